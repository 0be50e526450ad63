//! How long the steps of a sandbox's life take here. Prints microseconds, smallest,
//! median and 99th percentile. `cycles <state directory> <rounds>`, beside `spawner`.

#![expect(clippy::print_stdout, reason = "its output is what it is for")]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use outrigger_sandbox::{
    Backend, Command, ExecId, Execute, Origin, Sandbox, SandboxId, SnapshotId, Spec, Suspend,
};
use outrigger_sandbox_native::{Config, Launch, Native};

/// Sandboxes that are kept ready.
const WARM: u32 = 2;

#[derive(Default)]
struct Times(Vec<(&'static str, Vec<Duration>)>);

impl Times {
    fn note(&mut self, name: &'static str, began: Instant) {
        let took = began.elapsed();
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, times)) => times.push(took),
            None => self.0.push((name, vec![took])),
        }
    }

    fn tell(&mut self) {
        for (name, times) in &mut self.0 {
            times.sort();
            let at = |part: usize| times[(times.len() - 1) * part / 100].as_micros();
            println!("{name:<18} {:>6} {:>6} {:>6}", at(0), at(50), at(99));
        }
    }
}

async fn exec(sandbox: &dyn Sandbox, id: &str) {
    let id = ExecId::new(id).expect("a name");
    let request = Execute::new(id, Command::Argv(vec![b"true".to_vec()]));
    sandbox.execute(request, &()).await.expect("an outcome");
}

async fn open(state: PathBuf, warm: u32) -> Native {
    let mut program = std::env::current_exe().expect("this program has a path");
    program.set_file_name("spawner");
    let config = Config {
        state_dir: state,
        launch: Launch { program, args: Vec::new() },
        guest: outrigger_guest::PROGRAM,
        read_only: Vec::new(),
        warm,
    };
    Native::open(config).await.expect("the backend opens")
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut args = std::env::args().skip(1);
    let state = PathBuf::from(args.next().expect("a state directory"));
    let rounds: usize = args.next().map_or(100, |rounds| rounds.parse().expect("a number"));
    let native = open(state.clone(), 0).await;
    let snapshots = native.snapshots().expect("it has them");
    let mut times = Times::default();
    let sandbox_id = |name: String| SandboxId::new(name).expect("a name");
    let (one, fork) = (sandbox_id("one".to_owned()), sandbox_id("fork".to_owned()));
    let spec = Spec::default();
    for round in 0..rounds {
        let began = Instant::now();
        let sandbox = native.create(&one, &spec).await.expect("a sandbox");
        times.note("create", began);
        let began = Instant::now();
        exec(&*sandbox, "a").await;
        times.note("exec_true_first", began);
        let began = Instant::now();
        exec(&*sandbox, "b").await;
        times.note("exec_true", began);
        let began = Instant::now();
        native.suspend(&one, Suspend::Frozen).await.expect("it freezes");
        times.note("freeze", began);
        let began = Instant::now();
        native.create(&one, &spec).await.expect("it thaws");
        times.note("thaw", began);
        let began = Instant::now();
        native.suspend(&one, Suspend::Cold).await.expect("it goes cold");
        times.note("cold", began);
        let began = Instant::now();
        let sandbox = native.create(&one, &spec).await.expect("it goes on");
        exec(&*sandbox, "c").await;
        times.note("cold_resume_exec", began);
        let name = SnapshotId::new(format!("s{round}")).expect("a name");
        let began = Instant::now();
        snapshots.take(&one, &name).await.expect("a snapshot");
        times.note("snapshot", began);
        let from = Spec { origin: Origin::Snapshot(name.clone()), ..spec.clone() };
        let began = Instant::now();
        native.create(&fork, &from).await.expect("a fork");
        times.note("fork", began);
        let began = Instant::now();
        native.destroy(&fork).await.expect("it goes");
        times.note("destroy", began);
        native.destroy(&one).await.expect("it goes");
        snapshots.remove(&name).await.expect("it goes");
    }
    let warm = open(state, WARM).await;
    for round in 0..rounds {
        let id = sandbox_id(format!("w{round}"));
        let began = Instant::now();
        let sandbox = warm.create(&id, &spec).await.expect("a sandbox");
        if round > 0 {
            times.note("create_warm", began);
        }
        exec(&*sandbox, "a").await;
        warm.destroy(&id).await.expect("it goes");
        // What is ready is made when nothing else is to do.
        tokio::time::sleep(Duration::from_millis(15)).await; // poll: the spawner tells nobody that it has one ready
    }
    times.tell();
}
