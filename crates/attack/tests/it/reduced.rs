//! Everything that can be tried quickly, where there are no namespaces.

use outrigger_attack::reduced;

#[test]
fn what_is_left_without_namespaces_holds() {
    let dir = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_attack");
    let mut attack = reduced::command(program.as_ref(), dir.path()).unwrap();
    let done = attack.args(["--backend", "reduced", "--fast"]).output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "\n{said}{}", String::from_utf8_lossy(&done.stderr));
    let summary = said.lines().last().unwrap();
    let attempts = summary.strip_prefix("native (reduced): ").expect(summary);
    let attempts: usize = attempts.split(' ').next().unwrap().parse().expect(summary);
    assert!(attempts > 400, "{said}");
}
