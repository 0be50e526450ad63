//! Rules of size: files, public traits, the architecture page.

use syn::visit::{self, Visit};

use super::project::Project;
use crate::crate_map;
use crate::finding::Finding;
use crate::limits::{
    ARCHITECTURE_LINES_MAX, FILE_LINES_MAX, FILE_LINES_SOFT_MAX, TRAIT_METHODS_MAX,
};

/// A file is one idea: it warns above the soft limit and fails above the hard one.
pub(super) fn files(project: &Project) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in &project.sources.files {
        let lines = source.production_lines();
        let message =
            |limit| format!("{lines} production lines, at most {limit}: split it by what it holds");
        if lines > FILE_LINES_MAX {
            findings.push(Finding::error(
                &source.path,
                lines,
                "file-lines",
                message(FILE_LINES_MAX),
            ));
        } else if lines > FILE_LINES_SOFT_MAX {
            let message = message(FILE_LINES_SOFT_MAX);
            findings.push(Finding::warning(&source.path, lines, "file-lines", message));
        }
    }
    findings
}

/// A port that needs more methods is two ports.
pub(super) fn traits(project: &Project) -> Vec<Finding> {
    struct Traits(Vec<(usize, String, usize)>);
    impl<'ast> Visit<'ast> for Traits {
        fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
            let methods =
                item.items.iter().filter(|item| matches!(item, syn::TraitItem::Fn(_))).count();
            if matches!(item.vis, syn::Visibility::Public(_)) && methods > TRAIT_METHODS_MAX {
                self.0.push((item.ident.span().start().line, item.ident.to_string(), methods));
            }
            visit::visit_item_trait(self, item);
        }
    }

    let mut findings = Vec::new();
    for source in &project.sources.files {
        let mut traits = Traits(Vec::new());
        traits.visit_file(&source.ast);
        findings.extend(traits.0.into_iter().map(|(line, name, methods)| {
            let message = format!(
                "`{name}` has {methods} methods, at most {TRAIT_METHODS_MAX}: it is more than one port"
            );
            Finding::error(&source.path, line, "trait-methods", message)
        }));
    }
    findings
}

/// The map of the whole stays readable in one sitting.
pub(super) fn architecture(project: &Project) -> Vec<Finding> {
    let lines = project.tree.text(crate_map::PAGE).map_or(0, |page| page.lines().count());
    if lines <= ARCHITECTURE_LINES_MAX {
        return Vec::new();
    }
    let message = format!("{lines} lines, at most {ARCHITECTURE_LINES_MAX}: move detail to docs/");
    vec![Finding::error(crate_map::PAGE, lines, "architecture-lines", message)]
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::project::check;
    use super::*;

    #[test]
    fn files_warn_at_the_soft_limit_and_fail_at_the_hard_one() {
        let tests = "#[cfg(test)]\nmod tests {}\n";
        let of = |lines: usize| "// x\n".repeat(lines) + tests;
        check(
            files,
            [
                ("crates/store/src/lib.rs", &of(500)),
                ("crates/model/src/lib.rs", &of(501)),
                ("crates/agent/src/lib.rs", &of(801)),
                ("crates/agent/tests/it/main.rs", &of(900)),
            ],
            &expect![[r"
                crates/agent/src/lib.rs:801: file-lines: 801 production lines, at most 800: split it by what it holds
                crates/model/src/lib.rs:501: file-lines: warning: 501 production lines, at most 500: split it by what it holds
            "]],
        );
    }

    #[test]
    fn only_public_traits_are_ports() {
        let methods = |count: usize| -> String {
            (0..count).map(|number| format!("fn m{number}(&self);\n")).collect()
        };
        let text = format!(
            "pub trait Wide {{ {} }}\ntrait Own {{ {} }}\npub trait Fits {{ type T; {} }}\n",
            methods(9),
            methods(9),
            methods(8)
        );
        check(
            traits,
            [("crates/store/src/lib.rs", &text)],
            &expect![[r"
                crates/store/src/lib.rs:1: trait-methods: `Wide` has 9 methods, at most 8: it is more than one port
            "]],
        );
    }

    #[test]
    fn the_architecture_page_has_an_end() {
        check(
            architecture,
            [("ARCHITECTURE.md", &"line\n".repeat(401))],
            &expect![[r"
                ARCHITECTURE.md:401: architecture-lines: 401 lines, at most 400: move detail to docs/
            "]],
        );
        check(architecture, [("ARCHITECTURE.md", &"line\n".repeat(400))], &expect![""]);
    }
}
