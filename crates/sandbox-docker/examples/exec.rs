//! How long commands take in a container: `exec SOCKET IMAGE [TIMES]`.
//!
//! Makes a sandbox from an image that the daemon has, runs `true` in it again and
//! again over the one stream, and prints the least, the middle and nearly the most.

#![expect(clippy::unwrap_used, reason = "an example fails where it fails")]
#![expect(clippy::print_stdout, reason = "what it measured is its output")]

use std::time::{Duration, Instant};

use outrigger_sandbox::{Backend, Command, ExecId, Execute, FileOp, SandboxId, Spec};
use outrigger_sandbox_docker::{Config, Docker};

fn show(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100];
    println!("{what}: {:?} / {:?} / {:?}", at(0), at(50), at(99));
}

#[tokio::main]
async fn main() {
    let mut args = std::env::args().skip(1);
    let socket = args.next().map(Into::into);
    let image = args.next();
    let times: usize = args.next().map_or(300, |times| times.parse().unwrap());
    let docker = Docker::open(Config {
        socket,
        owner: format!("example-{}", std::process::id()),
        runtime: None,
        guest: outrigger_guest::PROGRAM,
        images: Default::default(),
        default_image: image,
    });
    let docker = docker.await.unwrap();
    let mut made = Vec::new();
    for number in 0..10 {
        let id = SandboxId::new(format!("n{number}")).unwrap();
        let begun = Instant::now();
        docker.create(&id, &Spec::default()).await.unwrap();
        made.push(begun.elapsed());
        docker.destroy(&id).await.unwrap();
    }
    show("create", made);
    let id = SandboxId::new("one").unwrap();
    let sandbox = docker.create(&id, &Spec::default()).await.unwrap();
    let (mut commands, mut files) = (Vec::new(), Vec::new());
    for number in 0..times {
        let name = ExecId::new(format!("e{number}")).unwrap();
        let begun = Instant::now();
        let request = Execute::new(name, Command::Argv(vec![b"true".into()]));
        let done = sandbox.execute(request, &()).await.unwrap();
        commands.push(begun.elapsed());
        assert_eq!(done.exit_code(), Some(0));
        let begun = Instant::now();
        sandbox.files(FileOp::Stat { path: ".".to_owned() }).await.unwrap();
        files.push(begun.elapsed());
    }
    show("true", commands);
    show("stat", files);
    docker.destroy(&id).await.unwrap();
    docker.collect(|_| false).await.unwrap();
}
