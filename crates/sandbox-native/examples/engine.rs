//! A program that uses a sandbox, for what needs a second process: one that can be
//! killed, or one of another user. It shows the whole of what an engine needs.

#![expect(clippy::print_stdout, reason = "its output is read by a test")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use outrigger_sandbox::{
    Backend, Command, CreateSpec, DiskOrigin, ExecId, Execute, Output, OutputSink, SandboxId,
};
use outrigger_sandbox_native::{Archive, Config, Launch, Native};
use outrigger_sandbox_testing::FakeTrees;
use outrigger_sandbox_testing::conformance::{self, SuiteTarget};

/// Passes output on as it comes.
struct Print;

impl OutputSink for Print {
    fn output(&self, output: Output<'_>) {
        let (Output::Stdout(bytes) | Output::Stderr(bytes)) = output;
        println!("{}", String::from_utf8_lossy(bytes).trim_end());
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let mut next = |what: &str| args.next().unwrap_or_else(|| panic!("{what} is missing"));
    let mut mode = next("the mode");
    let mut read_only = Vec::new();
    if mode == "shown" {
        read_only.push(PathBuf::from(next("a directory")));
        mode = next("the mode");
    }
    let (state, program) = (next("the state directory"), next("the spawner"));
    let trees = Arc::new(FakeTrees::new(&["/memory", "/skills"]));
    let config = Config {
        state_dir: PathBuf::from(state),
        scratch: std::env::temp_dir(),
        launcher: Arc::new(Launch { program: PathBuf::from(program), args: Vec::new() }),
        guest: outrigger_guest::PROGRAM,
        read_only,
        trees: Some(trees.clone()),
    };
    let native = Native::open(config).await.expect("the backend opens");
    match mode.as_str() {
        "conformance" => {
            println!("{:?}", native.capabilities().isolation);
            let filter = args.next();
            let native = Arc::new(native);
            let target =
                SuiteTarget { trees: Some(trees), networks: Some(native.clone()), backend: native };
            let report = conformance::run(target, filter.as_deref()).await;
            print!("{}", report.let_off());
            println!("{report}");
            ExitCode::from(u8::from(report.failed().count() > 0))
        }
        "run" => {
            let (sandbox, id, line) = (next("a sandbox"), next("an exec id"), next("a line"));
            let sandbox = SandboxId::new(sandbox).expect("a name");
            let served = vec!["/memory".to_owned()];
            let mut spec = CreateSpec { served, ..CreateSpec::default() };
            // An archive with an image may be named too.
            if let Some(archive) = args.next() {
                let archive = Archive::open(archive).expect("an archive");
                native.import("image", archive, &|_| ()).await.expect("a template");
                spec.origin = DiskOrigin::Template("image".to_owned());
            }
            let sandbox = native.create(&sandbox, &spec).await.expect("a sandbox");
            let request = Execute::new(ExecId::new(id).expect("a name"), Command::Shell(line));
            let executed = sandbox.execute(request, &Print).await.expect("an outcome");
            println!("{:?}", executed.end);
            ExitCode::SUCCESS
        }
        other => panic!("`{other}` is no mode"),
    }
}
