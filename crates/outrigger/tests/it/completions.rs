//! What shells complete of the command line, and the pages for man(1).

use crate::support::World;
use std::fs;

/// What bash offers for the last of these words.
fn offered(world: &World, words: &[&str]) -> Vec<String> {
    // As bash calls what a package registers: complete(1) in bash(1).
    let asked = "source completions; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1))
        _outrigger \"$1\" \"${COMP_WORDS[-1]}\" \"${COMP_WORDS[-2]}\"
        printf '%s\\n' \"${COMPREPLY[@]}\"";
    let output = world.command("bash").args(["-c", asked, "bash"]).args(words).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_and_options() {
    let world = World::new();
    let script = world.ran(0, &["completions", "bash"]).stdout;
    fs::write(world.path("completions"), script).unwrap();
    assert_eq!(offered(&world, &["outrigger", "sess"]), ["sessions"]);
    assert_eq!(offered(&world, &["outrigger", "sessions", "re"]), ["resume", "rewind"]);
    assert_eq!(offered(&world, &["outrigger", "run", "--max-d"]), ["--max-dollars"]);
}

#[test]
fn every_shell_that_there_is_gets_a_script_and_another_is_refused() {
    let world = World::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        assert!(world.ran(0, &["completions", shell]).stdout.contains("sessions"), "{shell}");
    }
    assert!(world.ran(2, &["completions", "csh"]).stderr.contains("zsh"));
}

#[test]
fn each_command_has_a_page() {
    let world = World::new();
    let pages = world.path("pages");
    world.ran(2, &["man", pages.to_str().unwrap()]);
    fs::create_dir(&pages).unwrap();
    world.ran(0, &["man", pages.to_str().unwrap()]);
    let page = |name: &str| fs::read_to_string(pages.join(name)).unwrap();
    assert!(page("outrigger.1").starts_with(".ie"));
    assert!(page("outrigger-sessions-resume.1").contains("max\\-dollars"));
}
