//! What a terminal is shown beyond what a pipe gets.

use crate::support::{OUTRIGGER, Ran, Turn, World, shell};

/// Runs the binary on a terminal of 60 columns, and gives all that came out of it.
fn shown(world: &World, env: &[(&str, &str)], args: &[&str]) -> String {
    let dir = world.dir("repo", &[("plain", b"x")]);
    // A command that tells from which second on it has run, some of which may be passed over.
    let script =
        world.script(&[Turn(&[shell("sleep 4 # something that takes long, and has a long name")])]);
    let line = "stty cols 60; exec \"$BINARY\" --data-dir \"$DATA\" run --script \"$SCRIPT\" --dir \"$DIR\" $ARGS task";
    let mut terminal = world.command("script");
    terminal.args(["--quiet", "--return", "--command", line, "/dev/null"]);
    terminal.env("TERM", "xterm").env("SHELL", "/bin/sh").env("ARGS", args.join(" "));
    terminal
        .env("BINARY", OUTRIGGER)
        .env("DATA", world.data())
        .env("SCRIPT", script)
        .env("DIR", dir);
    let output = terminal.envs(env.iter().copied()).output();
    Ran::of(output.expect("`script` of util-linux can be run")).expect(0).stdout
}

#[test]
fn a_terminal_is_told_what_takes_long_and_the_line_goes_again() {
    let world = World::new();
    let text = shown(&world, &[], &[]);
    let tells = |text: &str| {
        [1, 2, 3].iter().any(|second| {
            text.contains(&format!(
                "\r… execute  sleep 4 # something that takes long, and … · {second} s\x1b[K"
            ))
        })
    };
    assert!(tells(&text), "{text:?}");
    // The next line begins where the status stood.
    assert!(text.contains("\r\x1b[K\x1b[2m  ✓ execute · exit 0"), "{text:?}");
    let plain = shown(&world, &[("NO_COLOR", "1")], &[]);
    assert!(tells(&plain) && !plain.replace("\x1b[K", "").contains('\x1b'), "{plain:?}");
    std::thread::scope(|scope| {
        for (env, args) in [(&[][..], "--quiet"), (&[], "--json"), (&[("TERM", "dumb")], "")] {
            scope.spawn(move || {
                let text = shown(&World::new(), env, &[args]);
                assert!(!text.contains("\r…") && !text.contains("\x1b[K"), "{args}: {text:?}");
            });
        }
    });
}
