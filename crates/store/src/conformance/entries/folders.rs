//! What every home of entries must do with folders: make, list, move and remove them.

use futures_util::future::join_all;

use super::fixture::{Fixture, name, on, own, scope};
use crate::entries::{ChangeRequest, EntryFile, EntryPrecondition};
use crate::limits;

pub(super) async fn folders(fixture: &Fixture<'_>) {
    let (ada, memory_scope) = (scope("ada"), own("ada"));
    let at = |path| on(&memory_scope, path);
    let make = |path| fixture.change(&ada, ChangeRequest::MakeFolder { at: at(path) });
    let drop = |path| fixture.change(&ada, ChangeRequest::RemoveFolder { at: at(path) });
    make("f/g/h").await.expect("nothing is there");
    assert_eq!(name(&make("f/g").await), "Exists");
    assert_eq!(name(&make("").await), "Exists");
    fixture.put(&ada, &at("f/g/x"), "x").await;
    assert_eq!(name(&make("f/g/x").await), "Exists");
    assert_eq!(name(&make("f/g/x/y").await), "NotFolder");
    let below = fixture.write(&ada, &at("f/g/x/y/z"), EntryPrecondition::Absent, "z").await;
    assert_eq!(name(&below), "NotFolder");
    for (path, expected) in [("f", "Folder"), ("f/g", "Folder"), ("", "Folder")] {
        let over = fixture.write(&ada, &at(path), EntryPrecondition::Absent, "x").await;
        assert_eq!(name(&over), expected, "over {path}");
        assert_eq!(name(&fixture.entries.read(&ada, &at(path), None).await), expected);
        let remove = ChangeRequest::Remove { at: at(path), revision: 1 };
        assert_eq!(name(&fixture.change(&ada, remove).await), expected);
    }
    assert_eq!(fixture.names(&ada, &at("f"), false).await, ["f/g"]);
    assert_eq!(fixture.names(&ada, &at("f"), true).await, ["f/g", "f/g/h", "f/g/x"]);
    assert_eq!(name(&fixture.entries.list(&ada, &at("f/g/x"), false, None).await), "NotFolder");
    assert_eq!(name(&fixture.entries.list(&ada, &at("none"), false, None).await), "Absent");
    for (path, expected) in
        [("f", "NotEmpty"), ("f/g/x", "NotFolder"), ("none", "Absent"), ("", "Root")]
    {
        assert_eq!(name(&drop(path).await), expected, "{path}");
    }
    let remove = ChangeRequest::Remove { at: at("f/g/x"), revision: 1 };
    fixture.change(&ada, remove).await.expect("it is there");
    assert!(fixture.entries.stat(&ada, &at("f/g")).await.expect("it stays").folder);
    for path in ["f/g/h", "f/g", "f"] {
        drop(path).await.expect("it is empty");
    }
    assert_eq!(name(&fixture.entries.stat(&ada, &at("f")).await), "Absent");
    // What was a folder can be a file, and what was a file a folder.
    assert_eq!(fixture.put(&ada, &at("f"), "file").await, 3);
    let remove = ChangeRequest::Remove { at: at("f"), revision: 3 };
    fixture.change(&ada, remove).await.expect("it is there");
    fixture.put(&ada, &at("f/g/h"), "file").await;
    assert_eq!(fixture.text(&ada, &at("f/g/h")).await.expect("it is there"), "file");
}

pub(super) async fn moves(fixture: &Fixture<'_>) {
    let (ada, memory_scope) = (scope("ada"), own("ada"));
    let at = |path| on(&memory_scope, path);
    let go = |from, revision, to, expected| {
        let change = ChangeRequest::Move { from: at(from), revision, to: at(to), expected };
        fixture.change(&ada, change)
    };
    for path in ["m/a/one", "m/a/b/two", "m/three", "m/four"] {
        fixture.put(&ada, &at(path), path).await;
    }
    let absent = EntryPrecondition::Absent;
    for (from, revision, to, expected, outcome) in [
        ("m/none", Some(1), "m/x", absent, "Absent"),
        ("m/three", Some(9), "m/x", absent, "Conflict"),
        ("m/three", Some(1), "m/four", absent, "Conflict"),
        ("m/three", Some(1), "m/four", EntryPrecondition::Revision(2), "Conflict"),
        ("m/three", Some(1), "m/a", absent, "Folder"),
        ("m/three", None, "m/x", absent, "NotFolder"),
        ("m/three", Some(1), "m/four/x", absent, "NotFolder"),
        ("m/a", Some(1), "m/x", absent, "Folder"),
        ("m/a", None, "m/a", absent, "Inside"),
        ("m/a", None, "m/a/b/c", absent, "Inside"),
        ("m/a", None, "m/four", absent, "Exists"),
        ("m/a", None, "m/a/b", absent, "Inside"),
        ("m/a", None, "", absent, "Root"),
        ("", None, "m/x", absent, "Root"),
    ] {
        let refused = go(from, revision, to, expected).await;
        assert_eq!(name(&refused), outcome, "{from} to {to}");
    }
    go("m/three", Some(1), "m/four", EntryPrecondition::Revision(1)).await.expect("both are there");
    assert_eq!(fixture.text(&ada, &at("m/four")).await.expect("moved"), "m/three");
    let read = fixture.entries.read(&ada, &at("m/four"), None).await.expect("moved");
    assert_eq!(read.version.derived_from, Some((at("m/three"), 1)));
    let moved = go("m/a", None, "n/a", absent).await.expect("nothing is there");
    assert_eq!(moved.version().map(|version| version.place.clone()), Some(at("n/a")));
    assert_eq!(fixture.names(&ada, &at("m"), true).await, ["m/four"]);
    let below = ["n/a", "n/a/b", "n/a/b/two", "n/a/one"];
    assert_eq!(fixture.names(&ada, &at("n"), true).await, below);
    go("n/a", None, "m/a", absent).await.expect("and back");
    assert_eq!(fixture.text(&ada, &at("m/a/b/two")).await.expect("moved"), "m/a/b/two");
    let stat = fixture.entries.stat(&ada, &at("m/a/b/two")).await.expect("moved");
    assert_eq!(stat.revision, 3, "written, gone, and come back");
}

pub(super) async fn pages(fixture: &Fixture<'_>) {
    let (ada, memory_scope) = (scope("ada"), own("ada"));
    let many = limits::PAGE_ENTRIES_MAX + 3;
    let write = |n: usize| {
        let at = on(&memory_scope, &format!("pages/{n:05}"));
        let change = ChangeRequest::Write {
            at,
            expected: EntryPrecondition::Absent,
            file: EntryFile::of("x"),
        };
        fixture.change(&ada, change)
    };
    let written = join_all((0..many).map(write)).await;
    assert!(written.iter().all(Result::is_ok), "they do not meet");
    for deep in [false, true] {
        let folder = on(&memory_scope, "pages");
        let page = fixture.entries.list(&ada, &folder, deep, None).await.expect("a page");
        assert_eq!((page.entries.len(), page.more), (limits::PAGE_ENTRIES_MAX, true));
        let last = page.entries.last().map(|(path, _)| path.clone());
        let page = fixture.entries.list(&ada, &folder, deep, last.as_ref()).await.expect("one");
        assert_eq!((page.entries.len(), page.more), (3, false));
    }
}
