//! The seeds that every change has to pass. `cargo xtask sim --seeds 10000` runs more of them.

use std::process::Command;

const SEEDS: &str = "200";

#[test]
fn two_hundred_seeds_pass() {
    let output = Command::new(env!("CARGO_BIN_EXE_sim")).args(["--seeds", SEEDS]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{said}");
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
}
