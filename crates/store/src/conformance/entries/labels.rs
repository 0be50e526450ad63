//! What every home of entries must do with labels: wash none off.

use std::collections::BTreeSet;

use outrigger_policy::Scope;

use super::{Home, by, group, name, on, own, scope};
use crate::entries::{
    Attribution, ChangeRequest, EntryAddress, EntryFile, Error, Expected, Version,
};
use crate::limits;

fn labelled(labels: &[&str]) -> Attribution {
    Attribution { labels: labels.iter().map(|label| (*label).to_owned()).collect(), ..by(3_000) }
}

impl Home<'_> {
    async fn carried(&self, who: &Scope, at: &EntryAddress) -> String {
        let read = self.entries.read(who, at, None).await.expect("it is there");
        carried(&read.version)
    }

    /// A text with labels goes every way that there is.
    pub(super) async fn labels_are_kept(&self) {
        let (ada, bob) = (scope("ada"), scope("bob"));
        let (own, ops) = (own("ada"), group("ops"));
        let at = |path| on(&own, path);
        let write = |path, expected, text: &str| ChangeRequest::Write {
            at: at(path),
            expected,
            file: EntryFile::of(text),
        };
        let moved =
            |from, to, expected| ChangeRequest::Move { from, revision: Some(1), to, expected };
        let web = labelled(&["from:web", "untrusted"]);
        let first = write("lab/web", Expected::Absent, "from the web");
        self.entries.change(&ada, first, web.clone()).await.expect("nothing is there");
        let web_page = || at("lab/web");
        for change in [
            write("lab/web", Expected::Revision(1), "replaced"),
            ChangeRequest::Edit { at: web_page(), old: "repl".into(), new: "p".into() },
            ChangeRequest::Revert { at: web_page(), to: 1, expected: Expected::Revision(3) },
        ] {
            self.change(&ada, change).await.expect("it is as expected");
            assert_eq!(self.carried(&ada, &web_page()).await, "from:web untrusted");
        }
        // What is made from it elsewhere, what is moved over something else, and in a folder.
        let derived_from = Some((at("lab/web"), 1));
        let file = EntryFile { derived_from, ..EntryFile::of("a copy") };
        let change = ChangeRequest::Write { at: at("lab/copy"), expected: Expected::Absent, file };
        self.change(&ada, change).await.expect("nothing is there");
        self.put(&ada, &at("lab/clean"), "clean").await;
        let over = moved(at("lab/copy"), at("lab/clean"), Expected::Revision(1));
        self.change(&ada, over).await.expect("both are as expected");
        assert_eq!(self.carried(&ada, &at("lab/clean")).await, "from:web untrusted");
        self.put(&ada, &at("lab/plain"), "plain").await;
        let onto = moved(at("lab/plain"), at("lab/web"), Expected::Revision(4));
        self.change(&ada, onto).await.expect("both are as expected");
        assert_eq!(self.carried(&ada, &at("lab/web")).await, "from:web untrusted");
        let (from, to) = (at("lab"), at("bal"));
        let change = ChangeRequest::Move { from, revision: None, to, expected: Expected::Absent };
        self.change(&ada, change).await.expect("nothing is there");
        assert_eq!(self.carried(&ada, &at("bal/web")).await, "from:web untrusted");

        // What was removed is gone: a text begins anew.
        let remove = ChangeRequest::Remove { at: at("bal/web"), revision: 1 };
        self.change(&ada, remove).await.expect("there");
        self.put(&ada, &at("bal/web"), "mine").await;
        assert_eq!(self.carried(&ada, &at("bal/web")).await, "");

        // Whose text it was stays known when another one goes on with it.
        let shared = on(&ops, "lab/shared");
        self.put(&bob, &shared, "bob\n").await;
        let edit =
            ChangeRequest::Edit { at: shared.clone(), old: "bob".into(), new: "bob, ada".into() };
        self.change(&ada, edit).await.expect("it is there once");
        assert_eq!(self.carried(&ada, &shared).await, "from:person:bob others");

        // A listing says what it brings, to whom it brings it.
        let listed = async |who| {
            let listed = self.entries.list(who, &on(&ops, "lab"), false, None).await;
            let labels = listed.expect("it is a folder").labels;
            labels.values().flatten().cloned().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(listed(&ada).await, "from:person:bob others");
        assert_eq!(listed(&bob).await, "from:person:ada from:person:bob others");

        // What would carry more than a version may is refused, and nothing is left of it.
        let many = |from: usize, to: usize| Attribution {
            labels: (from..to).map(|number| format!("from:{number}")).collect::<BTreeSet<_>>(),
            ..by(3_000)
        };
        let most = limits::LABELS_MAX;
        let first = write("new/many", Expected::Absent, "many");
        self.entries.change(&ada, first, many(0, most)).await.expect("just so many");
        let more = write("new/many", Expected::Revision(1), "more");
        let refused = self.entries.change(&ada, more, many(most, most + 1)).await;
        assert_eq!(name(&refused), "TooLarge");
        assert!(matches!(refused, Err(Error::TooLarge { .. })));
        assert_eq!(self.text(&ada, &at("new/many")).await.expect("it stays"), "many");
    }
}

fn carried(version: &Version) -> String {
    version.by.labels.iter().cloned().collect::<Vec<_>>().join(" ")
}
