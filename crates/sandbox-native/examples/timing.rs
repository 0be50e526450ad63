//! How long it takes to make, use and destroy a sandbox here. Prints microseconds,
//! smallest, median and 99th percentile. `timing <state directory> <rounds>`, beside `spawner`.

#![expect(clippy::print_stdout, reason = "its output is what it is for")]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use outrigger_sandbox::{Backend, Command, ExecId, Execute, SandboxId, Spec};
use outrigger_sandbox_native::{Config, Launch, Native};

fn tell(name: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |part: usize| times[(times.len() - 1) * part / 100].as_micros();
    println!("{name:<10} {:>6} {:>6} {:>6}", at(0), at(50), at(99));
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut args = std::env::args().skip(1);
    let state = PathBuf::from(args.next().expect("a state directory"));
    let rounds: usize = args.next().map_or(200, |rounds| rounds.parse().expect("a number"));
    let mut program = std::env::current_exe().expect("this program has a path");
    program.set_file_name("spawner");
    let config = Config {
        state_dir: state,
        launch: Launch { program, args: Vec::new() },
        guest: outrigger_guest::PROGRAM,
        read_only: Vec::new(),
        warm: 0,
    };
    let native = Native::open(config).await.expect("the backend opens");
    let spec = Spec::default();
    let warm = SandboxId::new("warm").expect("a name");
    native.create(&warm, &spec).await.expect("a sandbox");
    let (mut creates, mut execs, mut destroys) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        let id = SandboxId::new(format!("r{round}")).expect("a name");
        let began = Instant::now();
        let sandbox = native.create(&id, &spec).await.expect("a sandbox");
        creates.push(began.elapsed());
        let began = Instant::now();
        let request =
            Execute::new(ExecId::new("e").expect("a name"), Command::Argv(vec![b"true".to_vec()]));
        sandbox.execute(request, &()).await.expect("an outcome");
        execs.push(began.elapsed());
        let began = Instant::now();
        native.destroy(&id).await.expect("it goes");
        destroys.push(began.elapsed());
    }
    native.destroy(&warm).await.expect("it goes");
    tell("create", creates);
    tell("exec true", execs);
    tell("destroy", destroys);
}
