//! What people and models type all day: little of it may be opaque, or nobody heeds the
//! label.

use crate::word;

const EVERYDAY: &str = include_str!("everyday.txt");

/// What is opaque among them, and is so with reason.
const OPAQUE: [&str; 5] = [
    "find . -name '*.rs' -exec wc -l {} +",
    "git ls-files | xargs wc -l",
    "python3 -c 'print(1+1)'",
    "mkdir -p build/out && cd build && cmake ..",
    "wc -l $(git ls-files)",
];

#[test]
fn of_sixty_everyday_commands_five_are_opaque_and_none_touches() {
    assert_eq!(EVERYDAY.lines().count(), 60);
    let unclean: Vec<&str> = EVERYDAY.lines().filter(|command| word(command) != "clean").collect();
    assert_eq!(unclean, OPAQUE);
    assert!(OPAQUE.iter().all(|command| word(command) == "opaque"));
}
