//! The walk through the code in ARCHITECTURE.md is true.

use super::project::Project;
use crate::crate_map::PAGE;
use crate::finding::Finding;

const BEGIN: &str = "<!-- walk:begin -->";
const END: &str = "<!-- walk:end -->";

/// Each place of it is a file with a function of that name.
pub(super) fn places(project: &Project) -> Vec<Finding> {
    let Some(page) = project.tree.text(PAGE) else { return Vec::new() };
    let lines = page.lines().enumerate();
    let walk = lines.skip_while(|(_, line)| *line != BEGIN).take_while(|(_, line)| *line != END);
    walk.filter_map(|(number, line)| {
        // | 1 | `path`, `function` | ...
        let mut quoted = line.split('`').skip(1).step_by(2);
        let (path, function) = (quoted.next()?, quoted.next()?);
        let text = project.tree.text(&format!("crates/{path}"));
        let is_there = text.is_some_and(|text| {
            [format!("fn {function}("), format!("fn {function}<")].iter().any(|f| text.contains(f))
        });
        let message = format!("there is no function `{function}` in crates/{path}");
        (!is_there).then(|| Finding::error(PAGE, number + 1, "walk", message))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::project::check;
    use super::*;

    #[test]
    fn a_walk_leads_to_what_is_there() {
        check(
            places,
            [
                (
                    PAGE,
                    "`a/b.rs`, `x`\n<!-- walk:begin -->\n| | where |\n| 1 | `store/src/lib.rs`, `read` |\n\
                     | 2 | `store/src/lib.rs`, `write` |\n| 3 | `store/src/gone.rs`, `read` |\n<!-- walk:end -->\n",
                ),
                ("crates/store/src/lib.rs", "fn read<T>(it: T) {}\n"),
            ],
            &expect![[r#"
                ARCHITECTURE.md:5: walk: there is no function `write` in crates/store/src/lib.rs
                ARCHITECTURE.md:6: walk: there is no function `read` in crates/store/src/gone.rs
            "#]],
        );
    }
}
