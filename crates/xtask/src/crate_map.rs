//! The table of crates in ARCHITECTURE.md.
//!
//! Owns the text between the two markers: it is made from the manifests and the
//! floors, so it can't drift from them. Must never touch a line outside.

use std::fmt::Write as _;

use crate::finding::Finding;
use crate::layers::{Floor, floor};
use crate::workspace::{Member, Workspace};

/// The page that carries the table.
pub(crate) const PAGE: &str = "ARCHITECTURE.md";
const BEGIN: &str = "<!-- crate-map:begin -->";
const END: &str = "<!-- crate-map:end -->";

/// Why the table can't be put into the page.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// There is no place for it.
    #[error("{PAGE} lacks the lines `{BEGIN}` and `{END}`, in this order")]
    NoMarkers,
}

/// The table, from the ground up.
pub(crate) fn render(workspace: &Workspace) -> String {
    let mut members: Vec<(Floor, &Member)> = workspace
        .members
        .iter()
        .map(|member| (floor(member.short()).unwrap_or(Floor::Outside), member))
        .collect();
    members.sort_by_key(|(floor, member)| (*floor, member.short()));

    let mut table =
        String::from("| floor | crate | what it is | depends on |\n|---|---|---|---|\n");
    for (floor, member) in members {
        let floor = match floor {
            Floor::At(floor) => floor.to_string(),
            Floor::Outside => "-".to_owned(),
        };
        writeln!(
            table,
            "| {floor} | [`{}`]({}) | {} | {} |",
            member.short(),
            member.dir,
            member.description,
            internal(workspace, member)
        )
        .expect("a String takes any text");
    }
    table
}

fn internal(workspace: &Workspace, member: &Member) -> String {
    let mut names: Vec<String> = member
        .dependencies
        .iter()
        .filter(|dependency| !dependency.dev)
        .filter_map(|dependency| workspace.member(&dependency.name))
        .map(|lower| format!("`{}`", lower.short()))
        .collect();
    names.sort();
    names.dedup();
    if names.is_empty() { "nothing of ours".to_owned() } else { names.join(", ") }
}

/// The page with a fresh table.
pub(crate) fn replace(page: &str, table: &str) -> Result<String, Error> {
    let begin = page.find(BEGIN).ok_or(Error::NoMarkers)? + BEGIN.len();
    let end = begin + page[begin..].find(END).ok_or(Error::NoMarkers)?;
    Ok(format!("{}\n{table}{}", &page[..begin], &page[end..]))
}

/// Whether the page, where there is one, shows the table as it would be made now.
pub(crate) fn check(page: Option<&str>, workspace: &Workspace) -> Option<Finding> {
    let page = page?;
    let line = 1 + page.lines().take_while(|line| !line.contains(BEGIN)).count();
    match replace(page, &render(workspace)) {
        Err(error) => Some(Finding::error(PAGE, 1, "crate-map", error.to_string())),
        Ok(fresh) if fresh != page => Some(Finding::error(
            PAGE,
            line,
            "crate-map",
            "the crate table is stale: run `cargo xtask crate-map --write`",
        )),
        Ok(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::workspace::{Dependency, fixture};

    fn workspace() -> Workspace {
        let mut agent = fixture("outrigger-agent", &["serde", "outrigger-policy"]);
        agent.dependencies.push(Dependency { name: "xtask".to_owned(), dev: true });
        let members = vec![fixture("xtask", &[]), agent, fixture("outrigger-policy", &[])];
        Workspace { members, ..Workspace::default() }
    }

    #[test]
    fn table_stands_in_floor_order() {
        expect![[r"
            | floor | crate | what it is | depends on |
            |---|---|---|---|
            | 0 | [`policy`](crates/policy) | What policy is | nothing of ours |
            | 1 | [`agent`](crates/agent) | What agent is | `policy` |
            | - | [`xtask`](crates/xtask) | What xtask is | nothing of ours |
        "]]
        .assert_eq(&render(&workspace()));
    }

    #[test]
    fn only_the_text_between_the_markers_changes() {
        let page = format!("# Map\nbefore\n{BEGIN}\nold\n{END}\nafter\n");
        let fresh = replace(&page, "new\n").expect("both markers are there");
        expect![[r"
            # Map
            before
            <!-- crate-map:begin -->
            new
            <!-- crate-map:end -->
            after
        "]]
        .assert_eq(&fresh);
    }

    #[test]
    fn a_stale_table_is_found_and_a_fresh_one_is_not() {
        let workspace = workspace();
        assert_eq!(check(None, &workspace), None);

        let stale = format!("# Map\n{BEGIN}\nold\n{END}\n");
        let found = check(Some(&stale), &workspace).expect("the table is old");
        expect!["ARCHITECTURE.md:2: crate-map: the crate table is stale: run `cargo xtask crate-map --write`"]
            .assert_eq(&found.to_string());

        let fresh = replace(&stale, &render(&workspace)).expect("both markers are there");
        assert_eq!(check(Some(&fresh), &workspace), None);
    }

    #[test]
    fn a_page_without_markers_is_an_error() {
        let found = check(Some("# Map\n"), &workspace()).expect("there is no place");
        expect!["ARCHITECTURE.md:1: crate-map: ARCHITECTURE.md lacks the lines `<!-- crate-map:begin -->` and `<!-- crate-map:end -->`, in this order"]
            .assert_eq(&found.to_string());
    }
}
