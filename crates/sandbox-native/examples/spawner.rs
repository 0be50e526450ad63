//! The smallest program that can be started as a spawner: it calls
//! [`outrigger_sandbox_native::spawner::main`] before anything else.

use std::process::ExitCode;

fn main() -> ExitCode {
    outrigger_sandbox_native::spawner::main(std::env::args_os().skip(1))
}
