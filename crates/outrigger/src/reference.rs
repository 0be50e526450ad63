//! Renders the reference pages of `docs/` from the code that they describe. Only in
//! tests, which fail when a page that is checked in says otherwise; `UPDATE_EXPECT=1`
//! writes it anew.

mod keys;

use clap::CommandFactory;
use expect_test::expect_file;
use std::fmt::Write;

use self::keys::{Key, TABLES};
use crate::cli::Cli;
use crate::config::{Config, File};
use crate::exit::Kind;

/// Columns of the help pages.
const COLUMNS: usize = 90;

const NOTE: &str =
    "<!-- Written by a test of crates/outrigger; UPDATE_EXPECT=1 writes it anew. -->";

fn configuration() -> String {
    let mut page = format!("{NOTE}\n\n{}", include_str!("reference/configuration.md"));
    for table in TABLES {
        write!(page, "\n## `[{}]`: {}\n\n", table.header, table.about).unwrap();
        page.push_str("| key | type | default | what it does |\n|---|---|---|---|\n");
        for Key { name, kind, default, about, instead, .. } in table.keys {
            let default = default();
            let instead = match *instead {
                "" => String::new(),
                instead => format!(" Instead: {instead}."),
            };
            writeln!(page, "| `{name}` | {kind} | {default} | {about}{instead} |").unwrap();
        }
    }
    write!(page, "\n## Example\n\n```toml\n{}```\n", example()).unwrap();
    page
}

/// A file in which every key is set.
fn example() -> String {
    let mut text = String::new();
    for (index, table) in TABLES.iter().enumerate() {
        let gap = if index > 0 { "\n" } else { "" };
        writeln!(text, "{gap}[{}]", table.header).unwrap();
        for key in table.keys {
            // A server is either at an address or a program.
            let program = table.name == "tools" && ["command", "sandbox"].contains(&key.name);
            let off = if key.name == "script" || program { "# " } else { "" };
            writeln!(text, "{off}{} = {}", key.name, key.example()).unwrap();
        }
    }
    text
}

fn cli() -> String {
    let mut page = format!(
        "{NOTE}\n\n# The command line\n\nWhat `outrigger COMMAND --help` says. Exit codes are explained in \
         [exit-codes.md](exit-codes.md), configuration files in [configuration.md](configuration.md).\n"
    );
    let mut root = Cli::command().term_width(COLUMNS);
    root.build();
    command(&mut page, &mut root, "outrigger");
    page
}

fn command(page: &mut String, command: &mut clap::Command, path: &str) {
    let help = command.render_long_help().to_string();
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    write!(page, "\n## `{path}`\n\n```text\n{}\n```\n", lines.join("\n").trim_end()).unwrap();
    for inner in command.get_subcommands_mut() {
        let name = inner.get_name().to_owned();
        if name != "help" && !inner.is_hide_set() {
            self::command(page, inner, &format!("{path} {name}"));
        }
    }
}

fn exit_codes() -> String {
    let mut page = format!("{NOTE}\n\n{}", include_str!("reference/exit-codes.md"));
    for kind in Kind::ALL {
        let name = serde_json::to_value(kind).unwrap();
        let (code, name) = (kind as u8, name.as_str().unwrap());
        writeln!(page, "| {code} | `{name}` | {} | {} |", kind.meaning(), kind.remedy()).unwrap();
    }
    page
}

#[test]
fn docs_configuration_is_current() {
    expect_file!["../../../docs/configuration.md"].assert_eq(&configuration());
}

#[test]
fn docs_cli_is_current() {
    expect_file!["../../../docs/cli.md"].assert_eq(&cli());
}

#[test]
fn docs_exit_codes_is_current() {
    expect_file!["../../../docs/exit-codes.md"].assert_eq(&exit_codes());
}

/// The names that are allowed where this is wrong.
fn allowed(text: &str) -> Vec<String> {
    let error = toml::from_str::<File>(text).unwrap_err();
    let (_, names) = error.message().split_once("expected one of ").expect("it names them");
    names.split(", ").map(|name| name.trim_matches('`').to_owned()).collect()
}

#[test]
fn every_key_of_the_files_is_documented_and_no_other() {
    let tables: Vec<_> = TABLES.iter().map(|table| table.name.to_owned()).collect();
    assert_eq!(tables, allowed("nothing = 1"));
    for table in TABLES {
        let keys: Vec<_> = table.keys.iter().map(|key| key.name.to_owned()).collect();
        let wrong = format!("[{}]\n\"\" = 1", table.header);
        let allowed = match toml::from_str::<File>(&wrong).unwrap_err().message() {
            // Two names are joined by a word.
            said if said.contains(" or `") => {
                said.split('`').skip(3).step_by(2).map(str::to_owned).collect()
            }
            _ => allowed(&wrong),
        };
        assert_eq!(keys, allowed, "[{}]", table.name);
    }
}

#[test]
fn the_example_and_every_default_are_taken() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.toml");
    std::fs::write(&path, example()).unwrap();
    Config::of_files(std::slice::from_ref(&path)).map_err(|failure| failure.message).unwrap();
    let plain = Config::default();
    for key in TABLES.iter().flat_map(|table| table.keys.iter().map(move |key| (table, key))) {
        let (table, key) = key;
        let default = (key.default)();
        let Some(value) = default.strip_prefix('`').and_then(|text| text.strip_suffix('`')) else {
            continue;
        };
        if table.name == "tools" {
            // A server has to be somewhere, which no default says.
            continue;
        }
        std::fs::write(&path, format!("[{}]\n{} = {value}\n", table.name, key.name)).unwrap();
        let set = Config::of_files(std::slice::from_ref(&path));
        let set = set.map_err(|failure| failure.message).unwrap();
        let model = table.name == "model";
        assert!(model || format!("{set:?}") == format!("{plain:?}"), "{}.{}", table.name, key.name);
    }
}

#[test]
fn numbers_outside_their_documented_range_are_refused() {
    for table in TABLES {
        for key in table.keys {
            let Some((_, range)) = key.kind.split_once("whole number, ") else { continue };
            let (least, most) = range.split_once(" to ").expect("a range");
            let (least, most): (u64, u64) = (least.parse().unwrap(), most.parse().unwrap());
            let below = least.checked_sub(1).map(|below| (below, false));
            for (value, fits) in
                [(least, true), (most, true), (most + 1, false)].into_iter().chain(below)
            {
                let text = format!("[{}]\n{} = {value}", table.header, key.name);
                assert_eq!(toml::from_str::<File>(&text).is_ok(), fits, "{text}");
            }
        }
    }
}
