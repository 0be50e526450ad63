//! Rules of names: none that holds everything, none said twice, limits together.

use std::collections::BTreeMap;

use syn::visit::{self, Visit};

use super::project::Project;
use crate::finding::Finding;
use crate::source::Source;

/// Names under which anything fits, so that everything ends up there.
const BANNED: &[&str] = &["core", "common", "utils", "util", "types", "helpers", "misc"];

/// Metaphors that types had, and what the field says instead.
const METAPHORS: &[(&str, &str)] = &[
    ("Berth", "SandboxHandle"),
    ("Site", "SandboxConfig"),
    ("Care", "RetentionPolicy"),
    ("Lulls", "WaitingOnPeople"),
    ("Held", "GrantTable"),
    ("Hitch", "ProvisionError"),
    ("Trouble", "Warning"),
    ("Told", "OutputForwarder"),
    ("Shelf", "MemoryScope"),
    ("Shelves", "MemoryService"),
    ("Shelved", "SessionMemory"),
    ("SessionTree", "MemoryTree"),
    ("Handled", "MemoryView"),
    ("Hand", "Origin"),
    ("Spot", "ResolvedPath"),
    ("Birth", "SandboxSpec"),
    ("Unborn", "StartingGuest"),
    ("Mould", "GuestTemplate"),
    ("Blank", "PreforkedGuest"),
    ("Stock", "PreforkPool"),
    ("Spares", "DiskPool"),
    ("Doom", "KillRetry"),
    ("Began", "CreateOutcome"),
    ("Ground", "IsolationMode"),
    ("Survey", "DiskUsage"),
    ("Demand", "CpuPressure"),
    ("Patience", "RetryPolicy"),
    ("Kin", "SubagentFacts"),
    ("Purse", "AccountTotals"),
    ("Desk", "ToolServer"),
];

/// Participles that are no name of a type by themselves: they say what was done, and not to
/// what.
const PARTICIPLES: &[&str] = &[
    "Answered",
    "Asked",
    "Begun",
    "Calling",
    "Checked",
    "Collected",
    "Declared",
    "Derived",
    "Doing",
    "Done",
    "Executed",
    "Expected",
    "Found",
    "Given",
    "Judged",
    "Kept",
    "Known",
    "Listed",
    "Loaded",
    "Made",
    "Making",
    "Opened",
    "Packed",
    "Prepared",
    "Reached",
    "Said",
    "Seen",
    "Sent",
    "Taken",
    "Told",
    "Tried",
];

/// Ends of a constant's name that make it a limit.
const LIMIT_ENDS: &[&str] = &["_MAX", "_MIN", "_DEFAULT", "_PERCENT", "_MS"];

/// No crate and no module has a name under which anything fits.
pub(super) fn banned(project: &Project) -> Vec<Finding> {
    let message = |name: &str| format!("`{name}` says nothing: name it after what it holds");
    let mut findings = Vec::new();
    for member in &project.workspace.members {
        if BANNED.contains(&member.short()) {
            let message = message(member.short());
            findings.push(Finding::error(member.manifest(), 1, "banned-name", message));
        }
    }
    for source in &project.sources.files {
        for (line, name) in modules(source) {
            if BANNED.contains(&name.as_str()) {
                findings.push(Finding::error(&source.path, line, "banned-name", message(&name)));
            }
        }
    }
    findings
}

fn modules(source: &Source) -> Vec<(usize, String)> {
    struct Modules(Vec<(usize, String)>);
    impl<'ast> Visit<'ast> for Modules {
        fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
            self.0.push((module.ident.span().start().line, module.ident.to_string()));
            visit::visit_item_mod(self, module);
        }
    }
    let mut modules = Modules(Vec::new());
    modules.visit_file(&source.ast);
    modules.0
}

/// No public type repeats its crate's name: `store::Error`, not `store::StoreError`.
///
/// An id is named after the thing that it identifies, so `sandbox::SandboxId` is fine.
pub(super) fn repeated(project: &Project) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in project.sources.files.iter().filter(|source| !source.is_test) {
        let prefix = pascal(&source.krate);
        for item in &source.ast.items {
            let Some(ident) = public_type(item) else { continue };
            let name = ident.to_string();
            let Some(rest) = name.strip_prefix(&prefix).filter(|_| !prefix.is_empty()) else {
                continue;
            };
            // `Modeled` does not repeat `model`: the rest must be a word of its own.
            if rest != "Id" && rest.starts_with(|first: char| first.is_uppercase()) {
                let krate = &source.krate;
                let message =
                    format!("`{krate}::{name}` repeats its crate's name: `{krate}::{rest}`");
                let line = ident.span().start().line;
                findings.push(Finding::error(&source.path, line, "repeated-name", message));
            }
        }
    }
    findings
}

fn pascal(krate: &str) -> String {
    krate
        .split('-')
        .flat_map(|word| {
            let mut letters = word.chars();
            letters.next().map(|first| first.to_uppercase().chain(letters).collect::<String>())
        })
        .collect()
}

fn public_type(item: &syn::Item) -> Option<&syn::Ident> {
    let (vis, ident) = declared(item)?;
    matches!(vis, syn::Visibility::Public(_)).then_some(ident)
}

fn declared(item: &syn::Item) -> Option<(&syn::Visibility, &syn::Ident)> {
    match item {
        syn::Item::Struct(item) => Some((&item.vis, &item.ident)),
        syn::Item::Enum(item) => Some((&item.vis, &item.ident)),
        syn::Item::Trait(item) => Some((&item.vis, &item.ident)),
        syn::Item::Type(item) => Some((&item.vis, &item.ident)),
        _ => None,
    }
}

/// No type is called by a metaphor for which the field has a word.
pub(super) fn metaphors(project: &Project) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in &project.sources.files {
        for (_, ident) in source.ast.items.iter().filter_map(declared) {
            let Some((name, instead)) = METAPHORS.iter().find(|(name, _)| ident == name) else {
                continue;
            };
            let message = format!("`{name}` is a metaphor: the field says `{instead}`");
            let line = ident.span().start().line;
            findings.push(Finding::error(&source.path, line, "metaphor", message));
        }
    }
    findings
}

/// No type is called by a participle alone. What only tests see may be.
pub(super) fn participles(project: &Project) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in &project.sources.files {
        for (_, ident) in source.ast.items.iter().filter_map(declared) {
            let line = ident.span().start().line;
            if PARTICIPLES.iter().any(|word| ident == word) && !source.is_test_line(line) {
                let message = format!("`{ident}` is a bare participle: a type is a noun");
                findings.push(Finding::error(&source.path, line, "participle", message));
            }
        }
    }
    findings
}

/// Names that say enough in any crate, together with the crate's.
const SHARED: &[&str] = &["Error", "Kind", "Config", "Settings"];

/// No two crates publish a type of one name: a reader of either would have to ask which.
pub(super) fn shared(project: &Project) -> Vec<Finding> {
    let mut published: BTreeMap<String, BTreeMap<&str, (&Source, usize)>> = BTreeMap::new();
    // What is no member of the workspace publishes nothing.
    let published_by = |source: &&Source| !source.is_test && !source.krate.is_empty();
    for source in project.sources.files.iter().filter(published_by) {
        for ident in source.ast.items.iter().filter_map(public_type) {
            let known = published.entry(ident.to_string()).or_default();
            known.entry(&source.krate).or_insert((source, ident.span().start().line));
        }
    }
    let mut findings = Vec::new();
    for (name, crates) in published {
        if crates.len() < 2 || SHARED.contains(&name.as_str()) {
            continue;
        }
        let all: Vec<&str> = crates.keys().copied().collect();
        for (source, line) in crates.values() {
            let message = format!(
                "{} each publish a `{name}`: name it after what only this one is",
                all.join(" and ")
            );
            findings.push(Finding::error(&source.path, *line, "shared-name", message));
        }
    }
    findings
}

/// The limits of a crate stand together in its `limits.rs`.
pub(super) fn limits(project: &Project) -> Vec<Finding> {
    struct Constants(Vec<(usize, String)>);
    impl<'ast> Visit<'ast> for Constants {
        fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
            self.0.push((item.ident.span().start().line, item.ident.to_string()));
        }
        fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
            self.0.push((item.ident.span().start().line, item.ident.to_string()));
        }
    }

    let mut findings = Vec::new();
    for source in &project.sources.files {
        if source.path.ends_with("/src/limits.rs") || source.path.contains("/src/limits/") {
            continue;
        }
        let mut constants = Constants(Vec::new());
        constants.visit_file(&source.ast);
        for (line, name) in constants.0 {
            if LIMIT_ENDS.iter().any(|end| name.ends_with(end)) && !source.is_test_line(line) {
                let message =
                    format!("`{name}` is a limit: it belongs in its crate's src/limits.rs");
                findings.push(Finding::error(&source.path, line, "limits", message));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::project::check;
    use super::*;

    #[test]
    fn names_that_hold_everything_are_refused() {
        check(
            banned,
            [
                ("crates/core/src/lib.rs", "mod inner { mod misc {} }\n"),
                ("crates/store/src/lib.rs", "mod journal;\nmod utils;\nmod utility;\n"),
            ],
            &expect![[r"
                crates/core/Cargo.toml:1: banned-name: `core` says nothing: name it after what it holds
                crates/core/src/lib.rs:1: banned-name: `misc` says nothing: name it after what it holds
                crates/store/src/lib.rs:2: banned-name: `utils` says nothing: name it after what it holds
            "]],
        );
    }

    #[test]
    fn a_type_is_a_noun() {
        check(
            participles,
            [
                (
                    "crates/store/src/lib.rs",
                    "pub struct Found;\nenum Kept { Seen }\nstruct FoundRows;\ntype Sent = u8;\nstruct Granted;\n#[cfg(test)]\nstruct Made;\n#[cfg(test)]\nmod tests {\n    struct Asked;\n}\n",
                ),
                ("crates/store/tests/it/main.rs", "struct Seen;\n"),
            ],
            &expect![[r"
                crates/store/src/lib.rs:1: participle: `Found` is a bare participle: a type is a noun
                crates/store/src/lib.rs:2: participle: `Kept` is a bare participle: a type is a noun
                crates/store/src/lib.rs:4: participle: `Sent` is a bare participle: a type is a noun
            "]],
        );
    }

    #[test]
    fn a_name_is_published_by_one_crate() {
        check(
            shared,
            [
                (
                    "crates/agent/src/lib.rs",
                    "pub struct Summary;\npub enum Error {}\nstruct Own;\n",
                ),
                (
                    "crates/store/src/lib.rs",
                    "pub enum Error {}\npub struct Own;\n\npub trait Summary {}\n",
                ),
            ],
            &expect![[r#"
                crates/agent/src/lib.rs:1: shared-name: agent and store each publish a `Summary`: name it after what only this one is
                crates/store/src/lib.rs:4: shared-name: agent and store each publish a `Summary`: name it after what only this one is
            "#]],
        );
    }

    #[test]
    fn a_type_does_not_repeat_its_crate() {
        check(
            repeated,
            [
                (
                    "crates/store/src/lib.rs",
                    "pub struct StoreError;\nstruct StoreOwn;\npub enum Stored {}\n",
                ),
                (
                    "crates/sandbox/src/lib.rs",
                    "pub struct SandboxId;\npub trait Sandbox {}\npub type SandboxSpec = u8;\n",
                ),
                ("crates/sandbox-native/src/lib.rs", "pub struct SandboxNativeBackend;\n"),
            ],
            &expect![[r#"
                crates/sandbox-native/src/lib.rs:1: repeated-name: `sandbox-native::SandboxNativeBackend` repeats its crate's name: `sandbox-native::Backend`
                crates/sandbox/src/lib.rs:3: repeated-name: `sandbox::SandboxSpec` repeats its crate's name: `sandbox::Spec`
                crates/store/src/lib.rs:1: repeated-name: `store::StoreError` repeats its crate's name: `store::Error`
            "#]],
        );
    }

    #[test]
    fn limits_stand_in_limits_rs() {
        check(
            limits,
            [
                (
                    "crates/store/src/lib.rs",
                    "mod limits;\nconst ROWS_MAX: u8 = 1;\nconst NAME: u8 = 1;\nfn f() {\n    const WAIT_MS: u8 = 1;\n}\nimpl X {\n    const FILL_PERCENT: u8 = 1;\n}\n#[cfg(test)]\nmod tests {\n    const FINE_MAX: u8 = 1;\n}\n",
                ),
                ("crates/store/src/limits.rs", "pub const BATCH_MAX: u8 = 1;\n"),
                ("crates/store/tests/it/main.rs", "const TRIES_MAX: u8 = 1;\n"),
            ],
            &expect![[r"
                crates/store/src/lib.rs:2: limits: `ROWS_MAX` is a limit: it belongs in its crate's src/limits.rs
                crates/store/src/lib.rs:5: limits: `WAIT_MS` is a limit: it belongs in its crate's src/limits.rs
                crates/store/src/lib.rs:8: limits: `FILL_PERCENT` is a limit: it belongs in its crate's src/limits.rs
            "]],
        );
    }
}
