//! Rules of objects: what a type can do lies where a reader looks for it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::project::Project;
use crate::finding::Finding;
use crate::limits::{OBJECT_FILES_MAX, OBJECTS_SHOWN_MAX};
use crate::source::has_test_attribute;

/// A type and how much of it there is.
#[derive(Debug, Serialize, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Object {
    /// Inherent methods and functions.
    pub(super) methods: usize,
    /// Over how many files they are spread.
    pub(super) files: usize,
    /// Its name.
    pub(super) name: String,
    /// The file that defines it.
    pub(super) home: String,
}

/// All types with methods of their own, the largest first.
fn all(project: &Project) -> Vec<Object> {
    let mut found: BTreeMap<(String, String), (usize, BTreeSet<&str>)> = BTreeMap::new();
    for source in project.sources.files.iter().filter(|source| !source.is_test) {
        let Some(imports) = project.imports.get(&source.krate) else { continue };
        for item in &source.ast.items {
            let syn::Item::Impl(block) = item else { continue };
            if block.trait_.is_some() || has_test_attribute(&block.attrs) {
                continue;
            }
            let syn::Type::Path(path) = &*block.self_ty else { continue };
            let Some(name) = path.path.segments.last() else { continue };
            let name = name.ident.to_string();
            let methods =
                block.items.iter().filter(|item| matches!(item, syn::ImplItem::Fn(_))).count();
            let home = imports.home(source, &name);
            let (sum, files) = found.entry((name, home)).or_default();
            *sum += methods;
            files.insert(&source.path);
        }
    }
    let mut objects: Vec<Object> = found
        .into_iter()
        .map(|((name, home), (methods, files))| Object { methods, files: files.len(), name, home })
        .collect();
    objects.sort_by(|a, b| b.cmp(a));
    objects
}

/// The largest.
pub(super) fn largest(project: &Project) -> Vec<Object> {
    let mut objects = all(project);
    objects.truncate(OBJECTS_SHOWN_MAX);
    objects
}

/// The methods of a type lie in few files: more of them are more than one type.
pub(super) fn spread(project: &Project) -> Vec<Finding> {
    let wide = all(project).into_iter().filter(|object| object.files > OBJECT_FILES_MAX);
    wide.map(|object| {
        let Object { methods, files, name, home } = object;
        let message = format!(
            "the {methods} methods of `{name}` lie in {files} files, at most {OBJECT_FILES_MAX}: split it by what it owns"
        );
        Finding::error(home, 1, "object-files", message)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::project::check;
    use super::*;

    #[test]
    fn methods_lie_in_few_files() {
        let part = "use super::A;\nimpl A { fn f(&self) {} }\n";
        check(
            spread,
            [
                ("crates/store/src/a.rs", "pub struct A;\nimpl A { fn a() {} }\n"),
                ("crates/store/src/a/b.rs", part),
                ("crates/store/src/a/c.rs", part),
                ("crates/store/src/a/d.rs", part),
                ("crates/store/src/a/e.rs", "use super::A;\nimpl A { fn e() {} fn f() {} }\n"),
                // Of the same name, and something else.
                (
                    "crates/store/src/b.rs",
                    "struct A;\nimpl A { fn a() {} }\nimpl Drop for A { fn drop(&mut self) {} }\n",
                ),
                ("crates/store/src/lib.rs", "mod a;\nmod b;\n"),
            ],
            &expect![[r"
                crates/store/src/a.rs:1: object-files: the 6 methods of `A` lie in 5 files, at most 4: split it by what it owns
            "]],
        );
    }
}
