//! What models are told of the tools.

use expect_test::expect;
use outrigger_tools::{ParsedCall, begin_in, specs, specs_of_further};
use serde_json::Value;

#[test]
fn names_arguments_and_effects() {
    let mut shown = String::new();
    for spec in specs("work") {
        let schema: Value = serde_json::from_str(spec.schema.as_str()).unwrap();
        let required = schema["required"].as_array().unwrap();
        let names = schema["properties"].as_object().unwrap().iter();
        let names: Vec<_> = names
            .map(|(name, property)| {
                let optional = if required.contains(&name.as_str().into()) { "" } else { "?" };
                format!("{name}{optional}: {}", property["type"].as_str().unwrap())
            })
            .collect();
        shown += &format!(
            "{}({}) {:?} {:?} {:?} in {}\n",
            spec.name,
            names.join(", "),
            spec.kind,
            spec.concurrency,
            spec.recovery,
            spec.sandbox.unwrap(),
        );
        assert_eq!(schema["additionalProperties"], false);
    }
    expect![[r#"
        execute(command: string, timeout?: integer, description?: string) Execute Exclusive Reattach in work
        ls(path?: string) ReadFiles Shared Repeat in work
        read_file(file_path: string, offset?: integer, limit?: integer) ReadFiles Shared Repeat in work
        write_file(file_path: string, content: string) WriteFiles Exclusive Reattach in work
        edit_file(file_path: string, old_string: string, new_string: string, replace_all?: boolean) WriteFiles Exclusive Reattach in work
        glob(pattern: string, path?: string) ReadFiles Shared Repeat in work
        grep(pattern: string, path?: string, glob?: string, case_insensitive?: boolean, literal?: boolean) ReadFiles Shared Repeat in work
    "#]].assert_eq(&shown);
}

#[test]
fn descriptions_are_short_and_numbers_in_them_are_true() {
    let specs = specs("work");
    let of = |name: &str| specs.iter().find(|spec| spec.name == name).unwrap();
    for spec in &specs {
        assert!(spec.description.len() < 700, "{}: {}", spec.name, spec.description.len());
        assert!(!spec.description.contains("  "), "{}", spec.description);
    }
    let read = &of("read_file").description;
    assert!(read.contains(&format!("{} lines", outrigger_tools::limits::READ_LINES_MAX)));
    assert!(read.contains(&format!("{} characters", outrigger_tools::limits::LINE_CHARS_MAX)));
    let timeout = of("execute").schema.as_str();
    assert!(timeout.contains(&format!("Default: {}", outrigger_tools::limits::TIMEOUT_MS_DEFAULT)));
    assert!(timeout.contains(&format!("at most {}", outrigger_tools::limits::TIMEOUT_MS_MAX)));
    for word in ["network", "not root", "/workspace", "has all of it"] {
        assert!(of("execute").description.contains(word), "{word}");
    }
}

#[test]
fn tools_say_where_they_begin() {
    let mut specs = specs("work");
    let directory = "/workspace/a \"part\"";
    begin_in(&mut specs, directory);
    for spec in &specs {
        let schema: Value = serde_json::from_str(spec.schema.as_str()).unwrap();
        let told = format!("{} {schema}", spec.description).replace("\\\"", "\"");
        assert_eq!(told.matches("/workspace").count(), told.matches(directory).count(), "{told}");
        assert!(spec.name == "execute" || told.contains(directory), "{told}");
        assert_eq!(spec.directory.as_deref(), Some(directory));
    }
    let execute = specs.iter().find(|spec| spec.name == "execute").unwrap();
    assert!(execute.description.contains("starts in /workspace/a \"part\""));
    let target = |arguments: &str| ParsedCall::new("ls", arguments, Some("/workspace/a")).target();
    assert_eq!(target("{}").as_deref(), Some("/workspace/a"));
    assert_eq!(target(r#"{"path": "../b"}"#).as_deref(), Some("/workspace/b"));
    assert_eq!(target(r#"{"path": "/tmp"}"#).as_deref(), Some("/tmp"));
}

#[test]
fn schema_of_execute() {
    let spec = specs("work").swap_remove(0);
    let schema: Value = serde_json::from_str(spec.schema.as_str()).unwrap();
    expect![[r#"
        {
          "type": "object",
          "properties": {
            "command": {
              "type": "string",
              "minLength": 1,
              "description": "The command line to run."
            },
            "timeout": {
              "type": "integer",
              "minimum": 1,
              "maximum": 600000,
              "description": "Milliseconds after which it is killed. Default: 120000; at most 600000."
            },
            "description": {
              "type": "string",
              "description": "What the command does, in five to ten words, for the people who watch."
            }
          },
          "required": [
            "command"
          ],
          "additionalProperties": false
        }"#]].assert_eq(&serde_json::to_string_pretty(&schema).unwrap());
}

#[test]
fn the_tools_of_a_further_sandbox_carry_its_name_and_are_the_same_otherwise() {
    for (tool, further) in specs("work").into_iter().zip(specs_of_further("fetch")) {
        assert_eq!(further.name, format!("{}_fetch", tool.name));
        assert_eq!(further.built_in(), tool.name);
        assert_eq!(further.sandbox.as_deref(), Some("fetch"));
        assert!(further.description.ends_with(&tool.description));
        let same = |spec: &outrigger_agent::ToolSpec| {
            (spec.schema.clone(), spec.kind, spec.concurrency, spec.recovery)
        };
        assert_eq!(same(&further), same(&tool));
    }
}
