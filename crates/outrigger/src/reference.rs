//! Renders the reference pages of `docs/` from the code that they describe. Only in
//! tests, which fail when a page that is checked in says otherwise; `UPDATE_EXPECT=1`
//! writes it anew.

use clap::CommandFactory;
use expect_test::expect_file;
use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, RestrictFormats, Transform};
use serde_json::Value;
use std::fmt::Write;

use crate::cli::Cli;
use crate::config::{Config, File};
use crate::exit::Kind;

/// Columns of the help pages.
const COLUMNS: usize = 90;

const NOTE: &str =
    "<!-- Written by a test of crates/outrigger; UPDATE_EXPECT=1 writes it anew. -->";

/// What editors check a configuration file by: draft 7 is what taplo knows. It shows what is said
/// of a key only where that stands beside the type, so nothing is referred to.
fn schema() -> Schema {
    let settings = SchemaSettings::draft07().with(|settings| settings.inline_subschemas = true);
    let settings = settings
        .with_transform(RecursiveTransform(without_null as fn(&mut Schema)))
        .with_transform(RestrictFormats::default());
    settings.into_generator().into_root_schema_for::<File>()
}

/// TOML has no null: what is absent is not written.
fn without_null(schema: &mut Schema) {
    let Some(schema) = schema.as_object_mut() else { return };
    schema.retain(|key, value| key != "default" || !value.is_null());
    for key in ["type", "enum", "anyOf"] {
        let Some(Value::Array(any)) = schema.get_mut(key) else { continue };
        any.retain(|one| !one.is_null() && one != "null" && one["type"] != "null");
        match (key, &mut any[..]) {
            ("type", [one]) => schema["type"] = one.take(),
            ("anyOf", [Value::Object(one)]) => {
                // What is said of the key stays, not what is said of its type.
                let mut one = std::mem::take(one);
                schema.remove(key);
                one.append(schema);
                *schema = one;
            }
            _ => {}
        }
    }
}

/// The tables of a file, each with its header.
fn tables() -> Vec<(String, Value)> {
    let of = |(name, schema): (&String, &Value)| {
        // Any number of tables by their names, or one that may be several, or one.
        let named = schema["patternProperties"].as_object().and_then(|named| named.values().next());
        let table = named.or(schema["anyOf"].get(0)).unwrap_or(schema);
        let example = schema["propertyNames"]["examples"][0].as_str();
        let header = example.map_or(name.clone(), |example| format!("{name}.{example}"));
        (header, table.clone())
    };
    keys(&schema().to_value()).map(of).collect()
}

/// The keys of a table, in their order.
fn keys(table: &Value) -> impl Iterator<Item = (&String, &Value)> {
    table["properties"].as_object().into_iter().flatten()
}

/// What is said of a key or a table, in one line. A page that it names becomes a link.
fn about(schema: &Value) -> String {
    let text = schema["description"].as_str().unwrap().replace('\n', " ");
    let link = |(index, part): (usize, &str)| match part.strip_prefix("docs/") {
        Some(page) if index % 2 == 1 => format!("[{part}]({page})"),
        _ if index % 2 == 1 => format!("`{part}`"),
        _ => part.to_owned(),
    };
    text.split('`').enumerate().map(link).collect()
}

/// A type, as people read it.
fn kind(schema: &Value) -> String {
    let list = |key: &str| schema[key].as_array().map(Vec::as_slice).unwrap_or_default();
    let values = list("enum").iter().chain(list("oneOf").iter().map(|one| &one["const"]));
    let values: Vec<_> = values.map(|value| format!("`{value}`")).collect();
    if let Some((last, others)) = values.split_last() {
        return match others {
            [] => last.clone(),
            others => format!("{} or {last}", others.join(", ")),
        };
    }
    let several = |schema: &Value| {
        let one = kind(schema);
        match one.strip_prefix("list") {
            Some(rest) => format!("lists{rest}"),
            None => one.replacen("string", "strings", 1),
        }
    };
    let names: Vec<_> = keys(schema).map(|(name, _)| format!("`{name}`")).collect();
    let plain = match schema["type"].as_str().unwrap() {
        "object" if names.is_empty() => {
            format!("table of {}", several(&schema["additionalProperties"]))
        }
        "object" => format!("table: {}", names.join(", ")),
        "array" => format!("list of {}", several(&schema["items"])),
        "integer" => "whole number".to_owned(),
        other => other.to_owned(),
    };
    match (&schema["pattern"], range(schema)) {
        (Value::String(pattern), _) => format!("{plain}, `{pattern}`"),
        (_, Some((least, most))) => format!("{plain}, {least} to {most}"),
        _ => plain,
    }
}

/// The least and the most of a number.
fn range(schema: &Value) -> Option<(f64, f64)> {
    Some((schema["minimum"].as_f64()?, schema["maximum"].as_f64()?))
}

/// A value as a file has it.
fn written(value: &Value) -> String {
    toml::Value::try_from(value).unwrap().to_string()
}

fn configuration() -> String {
    let mut page = format!("{NOTE}\n\n{}", include_str!("reference/configuration.md"));
    for (header, table) in tables() {
        let heading = about(&table);
        write!(page, "\n## `[{header}]`: {}\n\n", heading.trim_end_matches('.')).unwrap();
        page.push_str("| key | type | default | what it does |\n|---|---|---|---|\n");
        for (name, key) in keys(&table) {
            let default = key.get("default").map(|value| format!("`{}`", written(value)));
            let default = default.as_deref().unwrap_or("–");
            writeln!(page, "| `{name}` | {} | {default} | {} |", kind(key), about(key)).unwrap();
        }
    }
    write!(page, "\n## Example\n\n```toml{}```\n", example()).unwrap();
    page
}

/// A file in which every key is set.
fn example() -> String {
    let mut text = String::new();
    for (header, table) in tables() {
        write!(text, "\n[{header}]\n").unwrap();
        for (name, key) in keys(&table) {
            let value = key["examples"].get(0).unwrap_or(&key["default"]);
            // A script is instead of a model, and a program instead of a server's address.
            let program = header == "tools.github" && ["command", "sandbox"].contains(&&**name);
            let off = if name == "script" || program { "# " } else { "" };
            writeln!(text, "{off}{name} = {}", written(value)).unwrap();
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
fn docs_config_schema_is_current() {
    let text = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    expect_file!["../../../docs/config.schema.json"].assert_eq(&text);
}

#[test]
fn docs_cli_is_current() {
    expect_file!["../../../docs/cli.md"].assert_eq(&cli());
}

#[test]
fn docs_exit_codes_is_current() {
    expect_file!["../../../docs/exit-codes.md"].assert_eq(&exit_codes());
}

#[test]
fn every_key_is_described() {
    let mut described = RecursiveTransform(|schema: &mut Schema| {
        for (name, key) in keys(schema.as_value()) {
            assert!(key["description"].is_string(), "{name}");
        }
    });
    described.transform(&mut schema());
}

#[test]
fn the_example_and_every_default_are_taken() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.toml");
    let read = |text: &str| {
        std::fs::write(&path, text).unwrap();
        let config = Config::of_files(std::slice::from_ref(&path));
        format!("{:?}", config.map_err(|failure| failure.message).unwrap())
    };
    read(&example());
    for (header, table) in tables() {
        // A server has to be somewhere, which no default says.
        let more = if header == "tools.github" { "url = \"https://a\"\n" } else { "" };
        let plain = format!("[{header}]\n{more}");
        for (name, key) in keys(&table).filter(|(_, key)| !key["default"].is_null()) {
            let set = format!("{plain}{name} = {}\n", written(&key["default"]));
            assert!(read(&set) == read(&plain) || header == "model", "{set}");
        }
    }
}

#[test]
fn numbers_outside_their_documented_range_are_refused() {
    for (header, table) in tables() {
        for (name, key) in keys(&table) {
            let Some((least, most)) = range(key) else { continue };
            let around = [(least, true), (most, true), (least - 1.0, false), (most + 1.0, false)];
            for (value, fits) in around {
                let text = format!("[{header}]\n{name} = {value}");
                assert_eq!(toml::from_str::<File>(&text).is_ok(), fits, "{text}");
            }
        }
    }
}

/// The words of a line for a shell that quotes with `"` alone.
fn words(line: &str) -> Vec<String> {
    let quoted = |(index, part): (usize, &str)| match index % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    };
    line.split('"').enumerate().flat_map(quoted).collect()
}

#[test]
fn the_command_lines_that_an_agent_is_taught_are_taken() {
    let skill = include_str!("../../../docs/skills/outrigger/SKILL.md");
    let blocks = skill.split("```").skip(1).step_by(2).flat_map(str::lines);
    let lines: Vec<_> = blocks.filter(|line| line.starts_with("outrigger ")).collect();
    assert!(lines.len() > 10, "{lines:?}");
    for line in lines {
        let taken = Cli::command().try_get_matches_from(words(line));
        assert!(taken.is_ok(), "{line}: {}", taken.unwrap_err());
    }
}
