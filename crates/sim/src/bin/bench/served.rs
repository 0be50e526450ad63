//! What memory costs a program inside a sandbox: through FUSE, the guest, the engine's
//! tree with its rules, and the store.

use futures_util::future::join_all;
use outrigger_agent::SessionId;
use outrigger_engine::{Clock, MemoryService, ServedTrees, SystemClock};
use outrigger_policy::{Directory, MemoryKind, MemoryScope, Owner, Principal, RuleSet, Scope};
use outrigger_sandbox::{
    Backend, Command, CreateSpec, ExecId, Execute, Sandbox, SandboxId, Tree, Trees,
};
use outrigger_sandbox_native::{Config, Launch, Native};
use outrigger_store::entries::{
    Attribution, ChangeRequest, Entries, EntryAddress, EntryFile, EntryPath, EntryPrecondition,
};
use outrigger_store::{Database, DatabaseAddress, Settings};
use std::ffi::OsString;
use std::sync::Arc;

use crate::error::{Error, ErrorContext, Outcome};
use crate::figure::Figure;
use crate::harness::SPAWNER_MODE;
use crate::home::{self, Home};
use crate::sizes;

const PERSON: &str = "person:bench";

/// Opens and reads one file after the other, and prints for each the milliseconds of it.
const OPENS: &str = r"
import os, sys, time
count, size = int(sys.argv[1]), int(sys.argv[2])
paths = ['/memory/user/bulk/%02d/%04d.md' % (n // 100, n) for n in range(100)]
for n in range(count + 200):
    path = paths[n % len(paths)]
    begun = time.perf_counter_ns()
    file = os.open(path, os.O_RDONLY)
    data = os.read(file, 65536)
    took = time.perf_counter_ns() - begun
    os.close(file)
    assert len(data) == size
    if n >= 200:
        print(took / 1e6)
";

/// Searches everything, and prints the milliseconds of it.
const GREP: &str = r"
import subprocess, sys, time
for _ in range(int(sys.argv[1])):
    begun = time.perf_counter_ns()
    done = subprocess.run(['grep', '-r', 'needle', '/memory/user/bulk'], stdout=subprocess.PIPE)
    took = time.perf_counter_ns() - begun
    assert done.stdout.count(b'needle') == int(sys.argv[2]), done.stdout[:200]
    print(took / 1e6)
";

/// One tree for every sandbox.
#[derive(Debug)]
struct One(Arc<dyn Tree>);

impl Trees for One {
    fn of(&self, _: &SandboxId) -> Option<Arc<dyn Tree>> {
        Some(Arc::clone(&self.0))
    }
}

/// Fills a store, serves it into sandboxes and has programs look at it.
pub(crate) async fn measure(progress: impl Fn(&str)) -> Outcome<Vec<Figure>> {
    let home = Home::new()?;
    let opened =
        Database::open(&home::store(home.path()), &DatabaseAddress::Sqlite, Settings::default())
            .await;
    let store = Arc::new(opened.doing("opening the store")?);
    progress(&format!("{} entries are written", sizes::SERVED_ENTRIES));
    fill(&store).await?;
    let native = native(&home, tree(&store)?).await?;
    let (mut cold, mut warm, mut opens) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..sizes::SERVED_SANDBOXES {
        progress(&format!("sandbox {} searches and reads them", number + 1));
        let id = SandboxId::new(format!("served-{number}")).expect("digits are plain");
        let spec = CreateSpec { served: vec!["/memory".to_owned()], ..CreateSpec::default() };
        let sandbox = native.create(&id, &spec).await.doing("making a sandbox")?;
        let needles = sizes::SERVED_ENTRIES.to_string();
        cold.extend(timed(&*sandbox, "cold", GREP, &["1", &needles]).await?);
        let times = sizes::SERVED_WARM.to_string();
        warm.extend(timed(&*sandbox, "warm", GREP, &[&times, &needles]).await?);
        let (count, size) = (sizes::SERVED_OPENS / sizes::SERVED_SANDBOXES, sizes::SERVED_BYTES);
        let arguments = [count.to_string(), size.to_string()];
        let arguments = arguments.each_ref().map(String::as_str);
        opens.extend(timed(&*sandbox, "opens", OPENS, &arguments).await?);
        native.destroy(&id).await.doing("destroying a sandbox")?;
    }
    store.close().await;
    Ok(vec![
        Figure::of("fuse/open_read_4k", "ms", opens),
        Figure::of("fuse/grep_5000_cold", "ms", cold),
        Figure::of("fuse/grep_5000_warm", "ms", warm),
    ])
}

/// What a program in Python prints: a number a line.
async fn timed(
    sandbox: &dyn Sandbox,
    name: &str,
    program: &str,
    arguments: &[&str],
) -> Outcome<Vec<f64>> {
    let argv = ["python3", "-c", program].iter().chain(arguments).map(|it| (*it).into()).collect();
    let id = ExecId::new(name).expect("a plain name");
    let request = Execute::new(id, Command::Argv(argv));
    let done = sandbox.execute(request, &()).await.doing("running a program")?;
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    let numbers: Vec<f64> = text.lines().filter_map(|line| line.parse().ok()).collect();
    if numbers.is_empty() {
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        return Err(Error::Astray(format!("python3 in a sandbox measured nothing: {said}")));
    }
    Ok(numbers)
}

async fn native(home: &Home, tree: Arc<dyn Tree>) -> Outcome<Native> {
    let program = std::env::current_exe().doing("finding this program")?;
    let native = Native::open(Config {
        state_dir: home::sandboxes(home.path()),
        scratch: home.path().to_owned(),
        launcher: Arc::new(Launch { program, args: vec![OsString::from(SPAWNER_MODE)] }),
        guest: outrigger_guest::PROGRAM,
        read_only: Vec::new(),
        trees: Some(Arc::new(One(tree))),
    });
    native.await.doing("opening the native sandboxes")
}

fn tree(store: &Arc<Database>) -> Outcome<Arc<dyn Tree>> {
    let memory = MemoryService {
        entries: Arc::clone(store) as _,
        reviews: Arc::clone(store) as _,
        people: Directory::default(),
        served: ServedTrees::default(),
    };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let session = SessionId::new("bench").expect("a plain name");
    let tree = memory.tree(&Arc::new(RuleSet::local_default()), &clock, &session, PERSON);
    tree.ok_or_else(|| Error::Astray("a person has no tree".to_owned()))
}

async fn fill(store: &Database) -> Outcome<()> {
    let person: Principal = PERSON.parse().expect("a principal");
    let scope: Option<Scope> = Directory::default().authenticate(&person);
    let scope = scope.ok_or_else(|| Error::Astray("a person has no scope".to_owned()))?;
    let memory_scope =
        MemoryScope { kind: MemoryKind::Memory, owner: Owner::Person("bench".to_owned()) };
    let line = "A line of notes that says something of no weight at all, and goes on.\n";
    let mut writing = Vec::new();
    for number in 0..sizes::SERVED_ENTRIES {
        let mut text = format!("needle {number}\n");
        while text.len() < sizes::SERVED_BYTES {
            text.push_str(line);
        }
        text.truncate(sizes::SERVED_BYTES);
        let path = format!("bulk/{:02}/{number:04}.md", number / 100);
        let path = EntryPath::parse(&path).expect("digits are plain");
        let at = EntryAddress { memory_scope: memory_scope.clone(), path };
        let change = ChangeRequest::Write {
            at,
            expected: EntryPrecondition::Absent,
            file: EntryFile::of(text),
        };
        writing.push(store.change(&scope, change, Attribution::person(1)));
        // Many wait for the disk at once.
        if writing.len() == sizes::ENTRY_WRITERS as usize {
            for written in join_all(std::mem::take(&mut writing)).await {
                written.doing("writing an entry")?;
            }
        }
    }
    for written in join_all(writing).await {
        written.doing("writing an entry")?;
    }
    Ok(())
}
