//! Shell tricks that reach a path without naming it. Each is first shown to work on a plain
//! directory; on what is served it meets the rights, the versions and the journal that a
//! file tool meets, because there is nothing else to meet.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::support::{Turn, World, shell};

const WRITE: &str = include_str!("../tricks/write.txt");
const READ: &str = include_str!("../tricks/read.txt");

/// Where tricks can be played without anybody minding.
const PLAIN: &str = "/workspace/plain";
/// Where the session may write.
const OPEN: &str = "/memory/user/open";
/// Where the rules ask first, which a program can't be.
const ASKED: &str = "/memory/organisation/asked";
/// What the rules hide.
const HIDDEN: &str = "/memory/user/hidden";

/// Ways that a served tree has no room for, and that work on a disk: it has no hard links.
const ONLY_ON_A_DISK: [&str; 1] = ["hard link"];

const RULES: &str = r#"
@id("hidden")
forbid (principal, action == Action::"read_files", resource in Path::"/memory/user/hidden");
"#;

/// Names and texts.
fn tricks(text: &'static str) -> Vec<(&'static str, &'static str)> {
    let blocks = text.split("\n### ").skip(1);
    blocks.map(|block| block.split_once('\n').expect("a trick has a name and a text")).collect()
}

/// A trick for a directory.
fn aimed(trick: &str, dir: &str) -> String {
    let (head, tail) = dir.split_at(dir.len() / 2);
    let odd = |part: &str| match part.char_indices().nth(1) {
        Some((at, letter)) => format!("{}?{}", &part[..at], &part[at + letter.len_utf8()..]),
        None => part.to_owned(),
    };
    let glob: Vec<String> = dir.split('/').map(odd).collect();
    let rel = dir.strip_prefix("/workspace/").map_or_else(|| format!("..{dir}"), str::to_owned);
    let all = |byte: fn(u8) -> String| dir.bytes().map(byte).collect::<String>();
    trick
        .replace("{dir}", dir)
        .replace("{head}", head)
        .replace("{tail}", tail)
        .replace("{rel}", &rel)
        .replace("{glob}", &glob.join("/"))
        .replace("{b64}", &STANDARD.encode(dir))
        .replace("{hex}", &all(|byte| format!("\\x{byte:02x}")))
        .replace("{oct}", &all(|byte| format!("\\{byte:03o}")))
        .replace("{rev}", &dir.chars().rev().collect::<String>())
}

/// A command that plays a trick in a script of its own and says then what is there.
fn played(trick: &str, dir: &str, before: &str) -> String {
    let script = STANDARD.encode(aimed(trick, dir) + "\n");
    format!(
        "cd /workspace; {before} echo {script} | base64 -d > trick.sh; \
         HOME=/workspace timeout -k 1 10 bash trick.sh < /dev/null 2>&1; echo; echo =====; cat {dir}/entry.md 2>&1"
    )
}

impl World {
    fn tricked(commands: &[String]) -> Self {
        let world = Self::new();
        let rules = world.path("hidden.cedar");
        fs::write(&rules, RULES).unwrap();
        let file = format!(
            "[limits]\nsteps_max = 100000\ntokens_max = 100000000\n[policy]\nfiles = [{:?}]\n",
            rules.display().to_string()
        );
        world.configure(&file);
        let given = world.path("given");
        fs::write(&given, "SECRETword\n").unwrap();
        let given = given.to_str().unwrap();
        world.ran(0, &["memory", "scope", "/memory/organisation", "--own", "true"]);
        for dir in [OPEN, ASKED, HIDDEN] {
            world.ran(0, &["memory", "put", &format!("{dir}/entry.md"), given]);
        }
        world.ran(0, &["memory", "proposals", "accept", "1"]);
        let dir = world.dir("repo", &[("plain/entry.md", b"SECRETword\n")]);
        let turns: Vec<_> = commands.iter().map(|command| [shell(command)]).collect();
        let turns: Vec<_> = turns.iter().map(|turn| Turn(turn)).collect();
        let script = world.script(&turns);
        world.ran(0, &["run", "Do it.", "--dir", dir.to_str().unwrap(), "--script", &script]);
        world
    }

    /// What each command printed, and before what in the journal.
    fn printed(&self) -> Vec<String> {
        let events = self.events(&self.session());
        let texts = events.iter().filter_map(|event| {
            event["settled"]["outcome"]["done"]["output"]["text"].as_str().map(str::to_owned)
        });
        texts.collect()
    }

    fn versions(&self, path: &str) -> Vec<Value> {
        let history = self.ran(0, &["memory", "history", path, "--json"]).json();
        history["versions"].as_array().unwrap().clone()
    }
}

/// What stands there after a trick.
fn after(printed: &str) -> &str {
    printed.rsplit("=====\n").next().unwrap_or_default()
}

#[test]
fn there_are_a_hundred_of_them() {
    let names: BTreeSet<_> = tricks(WRITE).iter().chain(&tricks(READ)).map(|it| it.0).collect();
    assert!(tricks(WRITE).len() >= 100 && names.len() >= 150, "{}", names.len());
    let text = aimed("{dir} {head}+{tail} {rel} {glob} {oct}", "/memory/user");
    assert_eq!(
        text,
        "/memory/user /memor+y/user ../memory/user /m?mory/u?er \
         \\057\\155\\145\\155\\157\\162\\171\\057\\165\\163\\145\\162"
    );
}

#[test]
fn each_writes_to_a_plain_directory() {
    let reset = "mkdir -p plain; rm -rf plain/*; echo before > plain/entry.md;";
    let commands: Vec<_> =
        tricks(WRITE).iter().map(|(_, trick)| played(trick, PLAIN, reset)).collect();
    let printed = World::tricked(&commands).printed();
    for ((name, _), printed) in tricks(WRITE).iter().zip(&printed) {
        assert!(after(printed).contains("MARK"), "`{name}` writes nothing: {printed}");
    }
    assert_eq!(printed.len(), commands.len());
}

#[test]
fn each_makes_a_version_where_the_session_may_write() {
    let reset = format!("rm -f away; echo before > {OPEN}/entry.md;");
    let commands: Vec<_> =
        tricks(WRITE).iter().map(|(_, trick)| played(trick, OPEN, &reset)).collect();
    let world = World::tricked(&commands);
    let printed = world.printed();
    for ((name, _), printed) in tricks(WRITE).iter().zip(&printed) {
        let wrote = after(printed).contains("MARK");
        let expected = !ONLY_ON_A_DISK.contains(name);
        assert_eq!(wrote, expected, "`{name}`: {printed}");
    }
    // Every version is somebody's, and stands in the journal of the session, once.
    let session = world.session();
    let versions = world.versions(&format!("{OPEN}/entry.md"));
    let ours = versions.iter().filter(|it| it["via"] == "sandbox");
    let mut known = BTreeMap::new();
    for version in ours.clone() {
        assert_eq!(version["session"], session.as_str());
        assert_eq!(version["author"], "person:local");
        known.insert(version["revision"].as_u64().unwrap(), 0);
    }
    assert!(known.len() >= tricks(WRITE).len(), "{}", known.len());
    for event in world.events(&session) {
        for change in event["touched"]["changes"].as_array().into_iter().flatten() {
            if change["path"] == format!("{OPEN}/entry.md") {
                *known.get_mut(&change["revision"].as_u64().unwrap()).unwrap() += 1;
            }
        }
    }
    let wrong: Vec<_> = known.iter().filter(|(_, times)| **times != 1).collect();
    assert!(wrong.is_empty(), "not in the journal exactly once: {wrong:?}");
}

#[test]
fn none_writes_where_it_may_not() {
    let commands: Vec<_> =
        tricks(WRITE).iter().map(|(_, trick)| played(trick, ASKED, "")).collect();
    let world = World::tricked(&commands);
    for ((name, _), printed) in tricks(WRITE).iter().zip(&world.printed()) {
        assert!(after(printed).starts_with("SECRETword"), "`{name}`: {printed}");
    }
    assert_eq!(world.versions(&format!("{ASKED}/entry.md")).len(), 1);
    let listed = world.ran(0, &["memory", "ls", ASKED, "--json"]).json();
    assert_eq!(listed["entries"].as_array().unwrap().len(), 1, "{listed}");
    // What was tried stands in the journal.
    let events = world.events(&world.session());
    let tried = events.iter().filter(|event| {
        let refused = event["touched"]["refused"].as_array();
        refused.into_iter().flatten().any(|it| it["path"].as_str().unwrap().starts_with(ASKED))
    });
    assert!(tried.count() >= tricks(WRITE).len() * 9 / 10);
}

#[test]
fn each_reads_what_it_may_and_none_what_it_may_not() {
    let dirs = [PLAIN, OPEN, HIDDEN];
    // What one trick copied is not for the next to find.
    let reset = "rm -rf r c rl rh i a.tar piece-*;";
    let commands: Vec<_> = dirs
        .iter()
        .flat_map(|dir| tricks(READ).into_iter().map(move |(_, trick)| played(trick, dir, reset)))
        .collect();
    let world = World::tricked(&commands);
    let printed = world.printed();
    let count = tricks(READ).len();
    for (at, printed) in printed.iter().enumerate() {
        let ((name, _), dir) = (tricks(READ)[at % count], dirs[at / count]);
        let script = printed.split("=====\n").next().unwrap_or_default();
        let expected = match dir {
            HIDDEN => false,
            OPEN => !ONLY_ON_A_DISK.contains(&name),
            _ => true,
        };
        assert_eq!(script.contains("SECRETword"), expected, "`{name}` in {dir}: {printed}");
    }
    assert_eq!(printed.len(), commands.len());
}
