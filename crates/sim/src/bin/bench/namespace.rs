//! What the file tools' ways to entries cost, in a store that has many.

use outrigger_policy::{Directory, MemoryKind, MemoryScope, Owner, Principal, Scope};
use outrigger_store::entries::{
    Attribution, ChangeRequest, Entries, EntryAddress, EntryFile, EntryPath, EntryPrecondition,
    Error as EntryError, Search,
};
use outrigger_store::{Database, DatabaseAddress, Settings};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use tokio::task::JoinSet;

use crate::error::{Error, ErrorContext, Outcome};
use crate::figure::Figure;
use crate::home::{self, Home};
use crate::sizes;

/// Fills a store and asks it.
pub(crate) async fn measure(progress: impl Fn(&str)) -> Outcome<Vec<Figure>> {
    let home = Home::new()?;
    progress(&format!("{} entries are written", sizes::ENTRIES));
    let filled = FilledStore::new(&home::store(home.path())).await?;
    progress("they are listed, read, changed and searched");
    let figures = vec![
        Figure::of("memory/ls", "ms", filled.ls().await?),
        Figure::of("memory/read", "ms", filled.read().await?),
        Figure::of("memory/compare_and_set", "ms", filled.compare_and_set().await?),
        Figure::of("memory/search", "ms", filled.search().await?),
    ];
    filled.store.close().await;
    Ok(figures)
}

/// A store with many entries.
struct FilledStore {
    store: Arc<Database>,
    scope: Scope,
}

impl FilledStore {
    async fn new(directory: &Path) -> Outcome<Self> {
        let opened = Database::open(directory, &DatabaseAddress::Sqlite, Settings::default()).await;
        let store = Arc::new(opened.doing("opening the store")?);
        let ada = Principal::Person("ada".to_owned());
        let scope = Directory::default().authenticate(&ada);
        let scope = scope.ok_or_else(|| Error::Astray("a person has no scope".to_owned()))?;
        let filled = Self { store, scope };
        let mut writers = JoinSet::new();
        for writer in 0..sizes::ENTRY_WRITERS {
            let (store, scope) = (Arc::clone(&filled.store), filled.scope.clone());
            writers.spawn(async move {
                let mut random = fastrand::Rng::with_seed(writer);
                for number in (writer..sizes::ENTRIES).step_by(sizes::ENTRY_WRITERS as usize) {
                    let file = EntryFile::of(text(&mut random));
                    let change = ChangeRequest::Write {
                        at: place(number),
                        expected: EntryPrecondition::Absent,
                        file,
                    };
                    store.change(&scope, change, Attribution::person(1_700_000_000_000)).await?;
                }
                Ok::<(), EntryError>(())
            });
        }
        while let Some(written) = writers.join_next().await {
            written.doing("writing entries")?.doing("writing entries")?;
        }
        Ok(filled)
    }

    async fn ls(&self) -> Outcome<Vec<f64>> {
        let mut samples = Vec::new();
        for number in sampled(1) {
            let at = place(number);
            let path = at.path.folder().unwrap_or(EntryPath::ROOT);
            let folder = EntryAddress { path, ..at };
            let begun = Instant::now();
            let listed = self.store.list(&self.scope, &folder, false, None).await;
            let listed = listed.doing("listing entries")?;
            samples.push(begun.elapsed().as_secs_f64() * 1e3);
            if listed.entries.len() as u64 != sizes::FOLDER_ENTRIES {
                return Err(Error::Astray(format!("a folder has {}", listed.entries.len())));
            }
        }
        Ok(samples)
    }

    async fn read(&self) -> Outcome<Vec<f64>> {
        let mut samples = Vec::new();
        for number in sampled(2) {
            let begun = Instant::now();
            self.store.read(&self.scope, &place(number), None).await.doing("reading an entry")?;
            samples.push(begun.elapsed().as_secs_f64() * 1e3);
        }
        Ok(samples)
    }

    /// One writer alone: each waits for the disk by itself.
    async fn compare_and_set(&self) -> Outcome<Vec<f64>> {
        let (mut samples, mut random) = (Vec::new(), fastrand::Rng::with_seed(3));
        for number in sampled(3) {
            let at = place(number);
            let node = self.store.stat(&self.scope, &at).await.doing("looking at an entry")?;
            let (expected, file) =
                (EntryPrecondition::Revision(node.revision), EntryFile::of(text(&mut random)));
            let change = ChangeRequest::Write { at, expected, file };
            let begun = Instant::now();
            let changed = self.store.change(&self.scope, change, Attribution::person(1)).await;
            changed.doing("changing an entry")?;
            samples.push(begun.elapsed().as_secs_f64() * 1e3);
        }
        Ok(samples)
    }

    /// Words that few entries have, words that most have, and two at once.
    async fn search(&self) -> Outcome<Vec<f64>> {
        let (mut samples, mut random) = (Vec::new(), fastrand::Rng::with_seed(4));
        for number in 0..sizes::ENTRY_SAMPLES {
            let words = match number % 4 {
                0 => word(random.u64(100..sizes::WORDS)),
                1 => word(random.u64(0..100)),
                2 => format!("{} {}", word(random.u64(0..100)), word(random.u64(100..2_000))),
                _ => format!("{} {}", word(random.u64(0..20)), word(random.u64(0..20))),
            };
            let search = Search { words, memory_scopes: Vec::new(), limit: 20 };
            let begun = Instant::now();
            self.store.search(&self.scope, &search).await.doing("searching entries")?;
            samples.push(begun.elapsed().as_secs_f64() * 1e3);
        }
        Ok(samples)
    }
}

/// Entries that are looked at, in no order.
fn sampled(seed: u64) -> impl Iterator<Item = u64> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..sizes::ENTRY_SAMPLES).map(move |_| random.u64(0..sizes::ENTRIES))
}

fn place(number: u64) -> EntryAddress {
    let path = format!("notes/{:04}/{number:06}.md", number / sizes::FOLDER_ENTRIES);
    let path = EntryPath::parse(&path).expect("digits are plain");
    EntryAddress {
        memory_scope: MemoryScope {
            kind: MemoryKind::Memory,
            owner: Owner::Person("ada".to_owned()),
        },
        path,
    }
}

/// A text whose words are as unequally frequent as those of a language.
fn text(random: &mut fastrand::Rng) -> String {
    let mut text = String::new();
    for number in 0..sizes::ENTRY_WORDS {
        let rank = (sizes::WORDS as f64).powf(random.f64()) as u64 - 1;
        let end = if number % 12 == 11 { '\n' } else { ' ' };
        write!(text, "{}{end}", word(rank)).expect("a String takes everything");
    }
    text
}

/// The word of a rank: two syllables and more.
fn word(rank: u64) -> String {
    const SYLLABLES: [&str; 16] = [
        "ba", "co", "di", "fu", "ge", "ha", "jo", "ki", "lu", "me", "na", "po", "ri", "su", "te",
        "vo",
    ];
    let mut word = String::new();
    let mut rest = rank + 16;
    while rest > 0 {
        word += SYLLABLES[(rest % 16) as usize];
        rest /= 16;
    }
    word
}
