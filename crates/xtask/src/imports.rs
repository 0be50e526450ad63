//! Which file of a crate names what another file of it defines.
//!
//! Owns the way from a path in the code to the file that defines what it names: over `use`,
//! `super`, and re-exports, which are no imports themselves. Code that only tests compile
//! is left out. Macros are read only as far as their paths are imported by `use`.

use std::collections::{BTreeMap, BTreeSet};

use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

use crate::limits::REEXPORTS_MAX;
use crate::source::{Source, Sources, has_test_attribute};

/// Names of modules from the root of a crate down, and perhaps of an item in the last.
type Path = Vec<String>;

/// The imports of one crate. Files are named by their paths.
#[derive(Debug, Default)]
pub(crate) struct Imports {
    /// By module.
    files: BTreeMap<Path, File>,
    edges: BTreeMap<String, BTreeMap<String, usize>>,
}

#[derive(Debug, Default)]
struct File {
    path: String,
    /// What `use` brings in, by the name that it has here.
    used: BTreeMap<String, Path>,
    /// All that the code names, and in which line first.
    named: BTreeMap<Path, usize>,
}

impl Imports {
    /// Of each crate, by its short name.
    pub(crate) fn of(sources: &Sources) -> BTreeMap<String, Self> {
        let mut crates: BTreeMap<String, Self> = BTreeMap::new();
        for source in sources.files.iter().filter(|source| !source.is_test) {
            if let Some(module) = module(&source.path) {
                let of = crates.entry(source.krate.clone()).or_default();
                // A program beside a library of its own name has nothing that others import.
                if !(source.path.ends_with("/src/main.rs") && of.files.contains_key(&module)) {
                    of.files.insert(module.clone(), read(source, module));
                }
            }
        }
        for imports in crates.values_mut() {
            imports.link();
        }
        crates
    }

    fn link(&mut self) {
        let mut edges: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
        for file in self.files.values() {
            for (name, line) in &file.named {
                let Some(target) = self.resolve(name.clone()) else { continue };
                if target != file.path {
                    let known = edges.entry(file.path.clone()).or_default();
                    known.entry(target.to_owned()).or_insert(*line);
                }
            }
        }
        self.edges = edges;
    }

    /// The file that defines what a path from the root of the crate names.
    fn resolve(&self, mut path: Path) -> Option<&str> {
        for _ in 0..REEXPORTS_MAX {
            let depth = (0..=path.len()).rev().find(|n| self.files.contains_key(&path[..*n]))?;
            let file = &self.files[&path[..depth]];
            match path.get(depth).and_then(|name| file.used.get(name)) {
                Some(target) if *target != path[..=depth] => {
                    path = target.iter().chain(&path[depth + 1..]).cloned().collect();
                }
                Some(_) | None => return Some(&file.path),
            }
        }
        None
    }

    /// The file in which a type is defined that a file calls by this name.
    pub(crate) fn home(&self, source: &Source, name: &str) -> String {
        let module = module(&source.path).unwrap_or_default();
        let path: Path = module.into_iter().chain([name.to_owned()]).collect();
        self.resolve(path).unwrap_or(&source.path).to_owned()
    }

    /// The shortest circle through each knot of files that import one another: from each
    /// file, the next and the line in which it is named.
    pub(crate) fn circles(&self) -> Vec<Vec<(String, usize)>> {
        let mut circles = Vec::new();
        let mut seen = BTreeSet::new();
        for start in self.edges.keys() {
            if seen.contains(start) {
                continue;
            }
            if let Some(circle) = self.circle(start) {
                let knot = self.reached(start);
                seen.extend(knot.into_iter().filter(|file| self.reached(file).contains(start)));
                circles.push(circle);
            }
        }
        circles
    }

    fn next(&self, file: &str) -> impl Iterator<Item = (&String, usize)> {
        self.edges.get(file).into_iter().flatten().map(|(next, line)| (next, *line))
    }

    fn reached(&self, start: &str) -> BTreeSet<String> {
        let mut reached = BTreeSet::new();
        let mut left = vec![start.to_owned()];
        while let Some(file) = left.pop() {
            for (next, _) in self.next(&file) {
                if reached.insert(next.clone()) {
                    left.push(next.clone());
                }
            }
        }
        reached
    }

    /// The shortest way from a file back to it.
    fn circle(&self, start: &str) -> Option<Vec<(String, usize)>> {
        let mut ways: Vec<Vec<(String, usize)>> = vec![Vec::new()];
        let mut seen = BTreeSet::new();
        while !ways.is_empty() {
            let mut longer = Vec::new();
            for way in ways {
                let (at, _) = way.last().cloned().unwrap_or_else(|| (start.to_owned(), 0));
                for (next, line) in self.next(&at) {
                    let way: Vec<_> = way.iter().cloned().chain([(next.clone(), line)]).collect();
                    if next == start {
                        return Some(way);
                    }
                    if seen.insert(next.clone()) {
                        longer.push(way);
                    }
                }
            }
            ways = longer;
        }
        None
    }
}

/// The module that a file under `src` is.
fn module(path: &str) -> Option<Path> {
    let (_, below) = path.split_once("/src/")?;
    let below = below.strip_suffix(".rs")?;
    let below = below.strip_suffix("/mod").unwrap_or(below);
    match below {
        "lib" | "main" => Some(Path::new()),
        // Programs of their own.
        below if below.starts_with("bin/") => None,
        below => Some(below.split('/').map(str::to_owned).collect()),
    }
}

fn read(source: &Source, module: Path) -> File {
    let mut reader = Reader { module, file: File::default() };
    reader.file.path.clone_from(&source.path);
    reader.visit_file(&source.ast);
    reader.file
}

struct Reader {
    module: Path,
    file: File,
}

impl Reader {
    /// A path from the root of the crate, if it may lead into the crate at all.
    fn absolute(&self, path: &[String]) -> Option<Path> {
        let supers = path.iter().take_while(|name| *name == "super").count();
        let (base, rest) = match path.first().map(String::as_str)? {
            "crate" => (&[][..], &path[1..]),
            "self" => (&self.module[..], &path[1..]),
            "super" => (&self.module[..self.module.len().checked_sub(supers)?], &path[supers..]),
            _ => (&self.module[..], path),
        };
        Some(base.iter().chain(rest).cloned().collect())
    }

    fn name(&mut self, path: &[String], line: usize) {
        if let Some(path) = self.absolute(path) {
            self.file.named.entry(path).or_insert(line);
        }
    }

    fn import(&mut self, tree: &syn::UseTree, before: &mut Path, is_public: bool) {
        match tree {
            syn::UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.import(&path.tree, before, is_public);
                before.pop();
            }
            syn::UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.import(tree, before, is_public));
            }
            syn::UseTree::Name(name) => {
                self.bring(before, &name.ident, &name.ident, is_public);
            }
            syn::UseTree::Rename(name) => {
                self.bring(before, &name.ident, &name.rename, is_public);
            }
            syn::UseTree::Glob(glob) => {
                if !is_public {
                    self.name(&before.clone(), glob.span().start().line);
                }
            }
        }
    }

    fn bring(&mut self, before: &[String], name: &syn::Ident, here: &syn::Ident, is_public: bool) {
        let mut path = before.to_vec();
        let mut here = here.to_string();
        if name == "self" {
            here = path.last().cloned().unwrap_or_default();
        } else {
            path.push(name.to_string());
        }
        if !is_public {
            self.name(&path, name.span().start().line);
        }
        if let Some(path) = self.absolute(&path) {
            self.file.used.insert(here, path);
        }
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        match item {
            syn::Item::Mod(module) if has_test_attribute(&module.attrs) => {}
            syn::Item::Fn(function) if has_test_attribute(&function.attrs) => {}
            syn::Item::Impl(block) if has_test_attribute(&block.attrs) => {}
            syn::Item::Use(import) => {
                if !has_test_attribute(&import.attrs) {
                    let is_public = !matches!(import.vis, syn::Visibility::Inherited);
                    self.import(&import.tree, &mut Path::new(), is_public);
                }
            }
            item => visit::visit_item(self, item),
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Path = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if path.leading_colon.is_none() && names.len() > 1 {
            self.name(&names, path.span().start().line);
        }
        visit::visit_path(self, path);
    }
}
