//! Texts made to be too much: each gets a label, on a thread with the stack that threads
//! have by default.

use std::thread;

use outrigger_shell::label;
use outrigger_shell::limits::COMMAND_BYTES_MAX;
use proptest::prelude::*;

use crate::GUARDED;

/// What opens, what stands inside, what closes.
const NESTS: [(&str, &str, &str); 30] = [
    ("(", "a", ")"),
    ("( ", "a", " )"),
    ("((", "1", "))"),
    ("$(", "a", ")"),
    ("echo $(", "a", ")"),
    ("echo \"$(", "a", ")\""),
    ("echo $((", "1", "))"),
    ("$((", "1", "))"),
    ("echo $(( (", "1", ") ))"),
    ("{ ", "a;", " }"),
    ("{", "", "}"),
    ("[[ ", "a", " ]]"),
    ("[[ ( ", "a", " ) ]]"),
    ("[[ ! ", "-n a", " ]]"),
    ("[ ", "a", " ]"),
    ("if ", "a", "; then b; fi"),
    ("if a; then ", "b", "; fi"),
    ("while a; do ", "b", "; done"),
    ("for a in b; do ", "c", "; done"),
    ("case a in b) ", "c", " ;; esac"),
    ("f() { ", "a;", " }"),
    ("! ", "a", ""),
    ("time ", "a", ""),
    ("coproc ", "a", ""),
    ("echo ${x:-", "a", "}"),
    ("echo `", "a", "`"),
    ("<(", "a", ")"),
    ("cat <<A\n", "a", "\nA\n"),
    ("<<", "a", ""),
    ("bash -c '", "a", "'"),
];

/// What is only long.
const RUNS: [&str; 36] = [
    "\"", "'", "`", "\\", "$", "${", "$[", "{", "{,", "{a,b}", "*", "?", "[", "~", "!", "#", ";",
    "&", "|", "a|", "a&&", "a;", "a\n", "a ", "<", ">", "> a ", "<<<a ", "a=b ", "x=$x; ", "$x",
    "-", "../", "a'\"", "((", "\n",
];

fn check(text: &str) {
    // A time would be one of this machine; what counts is that each of them ends.
    let _ = label(text, GUARDED);
}

#[test]
fn nothing_that_is_nested_or_long_is_too_much() {
    let run = || {
        for (open, inside, close) in NESTS {
            for times in [8, 23, 24, 25, 100, 1_000, COMMAND_BYTES_MAX / (open.len() + close.len())]
            {
                check(&format!("{}{inside}{}", open.repeat(times), close.repeat(times)));
            }
            check(&open.repeat(COMMAND_BYTES_MAX / open.len()));
        }
        for run in RUNS {
            check(&run.repeat(COMMAND_BYTES_MAX / run.len()));
            check(&format!("echo {}", run.repeat(COMMAND_BYTES_MAX / run.len() - 5)));
        }
    };
    thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap().join().unwrap();
}

#[test]
fn characters_of_every_plane_are_no_way_out_of_a_table() {
    let signs = [
        "{", "${", "$", "<", ">", "<<", "[[ a =~ ", "\\", "=", "a=", "((", "`", "\"", "~", "#",
        "@", "*", "!", "-",
    ];
    for number in (0x80..=0x10_ffff_u32).step_by(0x3ff) {
        let Some(c) = char::from_u32(number) else { continue };
        for sign in signs {
            check(&format!("{sign}{c}"));
            check(&format!("a {sign}{c}{c}1}} b"));
        }
    }
    assert_eq!(crate::word("cat {🀄,/memory/x}"), "touches");
    assert_eq!(crate::word("echo '🀄' é > ü.txt"), "clean");
}

#[test]
fn what_is_too_long_is_opaque() {
    let fits = format!("ls {}", "a".repeat(COMMAND_BYTES_MAX - 3));
    assert!(!label(&fits, GUARDED).opaque);
    assert!(label(&format!("{fits}a"), GUARDED).opaque);
}

#[test]
fn values_are_not_multiplied_without_end() {
    let doubled: String = (0..40).map(|n| format!("x{}=$x{n}$x{n};", n + 1)).collect();
    let wide = format!("x={}; cat{}", "a".repeat(30_000), " $x".repeat(10_000));
    let braces = format!("echo {}", "{a,b}".repeat(200));
    for text in [format!("x0=a;{doubled} cat $x40"), wide, braces] {
        assert!(label(&text, GUARDED).opaque);
    }
    let many = format!("{} ((x{}))", "x=1;".repeat(8_000), "+x".repeat(10_000));
    check(&many);
}

#[test]
fn scripts_in_scripts_end() {
    let mut text = "ls".to_owned();
    for _ in 0..8 {
        text = format!("sh -c '{}'", text.replace('\'', "'\\''"));
    }
    assert!(label(&text, GUARDED).opaque);
}

/// Divided by bars.
const PIECES: &str = concat!(
    "cat ¦/memory¦/¦..¦a¦ ¦\n¦;¦&&¦||¦|¦&¦(¦)¦((¦))¦{¦}¦[[ ¦ ]]¦[ ¦ ]¦$¦$(¦${¦${x¦$((¦",
    "`¦\"¦'¦\\¦$'¦<¦>¦<<¦<<<¦<(¦EOF¦\nEOF\n¦if ¦then ¦fi¦for x in ¦do ¦done¦case ¦",
    "esac¦ in ¦;;¦*¦?¦~¦#¦=¦x=¦+=¦!¦time ¦sh -c ¦cd ¦é¦\u{0}¦\t¦{a,b}¦{1..3}¦eval ¦-¦",
    "@¦,",
);

/// Pieces of commands, which meet what single characters seldom do.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(PIECES.split('¦').collect::<Vec<_>>());
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_get_a_label(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_text_gets_a_label(text in "\\PC{0,100}") {
        check(&text);
    }

    #[test]
    fn any_pieces_get_a_label(text in pieces()) {
        check(&text);
    }

    /// A guarded path in plain sight is found whatever stands around it.
    #[test]
    fn a_path_between_blanks_is_never_overlooked(before in pieces(), after in pieces()) {
        let facts = label(&format!("{before} /memory/a {after}"), GUARDED);
        prop_assert!(facts.touches.contains("/memory"));
    }
}
