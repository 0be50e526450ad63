//! One parsed Rust file and its place in its crate.
//!
//! Owns which lines count as production code, which module declares which file,
//! and which files only tests compile. Must never know a rule.

use std::collections::{BTreeMap, BTreeSet};

use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

use crate::finding::Finding;
use crate::tokens::{Lexed, is_test_attribute};
use crate::tree::Tree;
use crate::workspace::Workspace;

/// A Rust file that parses.
#[derive(Debug)]
pub(crate) struct Source {
    /// Relative to the root of the repository.
    pub(crate) path: String,
    /// The short name of its crate.
    pub(crate) krate: String,
    /// Its text.
    pub(crate) text: String,
    /// Its syntax tree.
    pub(crate) ast: syn::File,
    /// Its tokens.
    pub(crate) lexed: Lexed,
    /// Whether only tests compile it.
    pub(crate) is_test: bool,
}

impl Source {
    /// Lines up to the trailing test module; none in a file of tests.
    pub(crate) fn production_lines(&self) -> usize {
        if self.is_test {
            return 0;
        }
        match self.ast.items.last() {
            Some(syn::Item::Mod(module)) if has_test_attribute(&module.attrs) => {
                module.span().start().line - 1
            }
            _ => self.text.lines().count(),
        }
    }

    /// Whether only tests compile that line.
    pub(crate) fn is_test_line(&self, line: usize) -> bool {
        self.is_test || self.lexed.is_test(line)
    }
}

/// All Rust files of the members of the workspace.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    /// By path.
    pub(crate) files: Vec<Source>,
    /// Files that no other file declares.
    pub(crate) orphans: Vec<String>,
}

impl Sources {
    /// Parses every Rust file; one that does not parse becomes a finding.
    pub(crate) fn parse(tree: &Tree, workspace: &Workspace) -> (Self, Vec<Finding>) {
        let mut findings = Vec::new();
        let mut files = Vec::new();
        let is_rust = |path: &str| path.rsplit_once('.').is_some_and(|(_, end)| end == "rs");
        for (path, text) in tree.iter().filter(|(path, _)| is_rust(path)) {
            match parse(path, text, workspace) {
                Ok(source) => files.push(source),
                Err(error) => findings.push(Finding::error(
                    path,
                    error.span().start().line,
                    "parse",
                    format!("this is not Rust yet: {error}"),
                )),
            }
        }
        let mut sources = Self { files, orphans: Vec::new() };
        sources.follow_modules(workspace);
        (sources, findings)
    }

    /// Walks the `mod` declarations from every target, so that test modules in
    /// files of their own and forgotten files are known.
    fn follow_modules(&mut self, workspace: &Workspace) {
        let roots: BTreeSet<&str> = workspace
            .members
            .iter()
            .flat_map(|member| &member.targets)
            .map(|target| target.path.as_str())
            .collect();
        let by_path: BTreeMap<&str, &Source> =
            self.files.iter().map(|source| (source.path.as_str(), source)).collect();

        // Value: whether every way to the file goes through a test module.
        let mut reached: BTreeMap<String, bool> = BTreeMap::new();
        let mut left: Vec<(String, bool)> =
            roots.iter().map(|root| ((*root).to_owned(), in_test_folder(root))).collect();
        while let Some((path, is_test)) = left.pop() {
            let Some(source) = by_path.get(path.as_str()) else { continue };
            let better = reached.get(&path).is_none_or(|known| *known && !is_test);
            if !better {
                continue;
            }
            reached.insert(path.clone(), is_test || has_test_attribute(&source.ast.attrs));
            for child in children(source, roots.contains(path.as_str())) {
                let is_test = reached[&path] || child.is_test;
                left.extend(child.candidates.into_iter().map(|path| (path, is_test)));
            }
        }
        for source in &mut self.files {
            match reached.get(&source.path) {
                Some(is_test) => source.is_test = *is_test,
                None => self.orphans.push(source.path.clone()),
            }
        }
    }
}

fn parse(path: &str, text: &str, workspace: &Workspace) -> syn::Result<Source> {
    let ast = syn::parse_file(text)?;
    let stream = text.parse().map_err(|error: proc_macro2::LexError| {
        syn::Error::new(error.span(), "it can't be cut into tokens")
    })?;
    let krate = workspace
        .members
        .iter()
        .filter(|member| path.starts_with(&format!("{}/", member.dir)))
        .max_by_key(|member| member.dir.len())
        .map_or("", |member| member.short());
    Ok(Source {
        path: path.to_owned(),
        krate: krate.to_owned(),
        text: text.to_owned(),
        lexed: Lexed::new(stream, text),
        ast,
        is_test: in_test_folder(path),
    })
}

/// Whether cargo compiles the folder for tests, benches or examples only.
fn in_test_folder(path: &str) -> bool {
    path.split('/').any(|part| matches!(part, "tests" | "benches" | "examples"))
        && !path.contains("/src/")
}

/// Whether an item with these attributes exists in tests only.
pub(crate) fn has_test_attribute(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let meta = &attribute.meta;
        match meta {
            syn::Meta::Path(path) => path.is_ident("test"),
            syn::Meta::List(list) if list.path.is_ident("cfg") => {
                let tokens = &list.tokens;
                is_test_attribute(&format!("cfg({tokens})").parse().unwrap_or_default())
            }
            syn::Meta::List(_) | syn::Meta::NameValue(_) => false,
        }
    })
}

/// A `mod name;` and the places where its file may be.
struct Child {
    candidates: Vec<String>,
    is_test: bool,
}

fn children(source: &Source, is_root: bool) -> Vec<Child> {
    let (folder, file) = source.path.rsplit_once('/').unwrap_or(("", &source.path));
    let own = if is_root || file == "mod.rs" {
        folder.to_owned()
    } else {
        format!("{folder}/{}", file.trim_end_matches(".rs"))
    };
    let mut walk = Declarations { folder, own, is_test: false, found: Vec::new() };
    walk.visit_file(&source.ast);
    walk.found
}

struct Declarations<'a> {
    folder: &'a str,
    own: String,
    is_test: bool,
    found: Vec<Child>,
}

impl<'ast> Visit<'ast> for Declarations<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        let is_test = self.is_test || has_test_attribute(&module.attrs);
        if module.content.is_none() {
            let (own, name) = (&self.own, &module.ident);
            let candidates = match path_attribute(&module.attrs) {
                Some(path) => vec![format!("{}/{path}", self.folder)],
                None => vec![format!("{own}/{name}.rs"), format!("{own}/{name}/mod.rs")],
            };
            self.found.push(Child { candidates, is_test });
            return;
        }
        let outer = (self.own.clone(), self.is_test);
        self.own = format!("{}/{}", self.own, module.ident);
        self.is_test = is_test;
        visit::visit_item_mod(self, module);
        (self.own, self.is_test) = outer;
    }
}

fn path_attribute(attributes: &[syn::Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| match &attribute.meta {
        syn::Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(path), .. }) => Some(path.value()),
            _ => None,
        },
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::{Target, fixture};

    fn parse_all<const N: usize>(files: [(&str, &str); N]) -> Sources {
        let mut store = fixture("outrigger-store", &[]);
        let test = Target { path: "crates/store/tests/it/main.rs".to_owned(), test: true };
        store.targets.push(test);
        let workspace = Workspace { members: vec![store], ..Workspace::default() };
        let (sources, findings) = Sources::parse(&Tree::from(files), &workspace);
        assert_eq!(findings, []);
        sources
    }

    #[test]
    fn production_ends_where_the_trailing_tests_begin() {
        let sources = parse_all([(
            "crates/store/src/lib.rs",
            "//! Doc.\nfn a() {}\n\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n",
        )]);
        assert_eq!(sources.files[0].production_lines(), 3);
        assert_eq!(sources.files[0].krate, "store");
    }

    #[test]
    fn a_test_module_in_its_own_file_is_no_production_code() {
        let sources = parse_all([
            ("crates/store/src/lib.rs", "mod deep;\n#[cfg(test)]\nmod proof;\n"),
            ("crates/store/src/deep.rs", "mod below;\n"),
            ("crates/store/src/deep/below.rs", "fn f() {}\n"),
            ("crates/store/src/proof.rs", "mod part;\n"),
            ("crates/store/src/proof/part.rs", "fn f() {}\n"),
        ]);
        let lines: Vec<usize> = sources.files.iter().map(Source::production_lines).collect();
        assert_eq!(lines, [1, 1, 1, 0, 0]);
        assert_eq!(sources.orphans, Vec::<String>::new());
    }

    #[test]
    fn files_that_nobody_declares_are_orphans() {
        let sources = parse_all([
            (
                "crates/store/src/lib.rs",
                "mod inline { mod inner; }\n#[path = \"odd.rs\"]\nmod even;\n",
            ),
            ("crates/store/src/inline/inner.rs", ""),
            ("crates/store/src/odd.rs", ""),
            ("crates/store/src/lost.rs", ""),
            ("crates/store/tests/it/main.rs", "mod known;\n"),
            ("crates/store/tests/it/known.rs", ""),
            ("crates/store/tests/it/forgotten.rs", ""),
        ]);
        assert_eq!(
            sources.orphans,
            ["crates/store/src/lost.rs", "crates/store/tests/it/forgotten.rs"]
        );
    }

    #[test]
    fn a_file_that_does_not_parse_is_a_finding() {
        let (_, findings) =
            Sources::parse(&Tree::from([("a.rs", "fn f( {\n")]), &Workspace::default());
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].rule, "parse");
    }
}
