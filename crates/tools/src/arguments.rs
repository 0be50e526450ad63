//! Arguments of tools: one table per tool gives both the schema that models are
//! told and the check of what they send.
//!
//! A complaint names every fault at once, what to write instead, and the
//! arguments that there are, so that the next attempt can be right.

use serde_json::{Map, Value, json};

use crate::namespace::WORKSPACE;

/// What an argument is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A string.
    Text {
        /// Whether an empty one makes sense.
        empty: bool,
    },
    /// A path: absolute, or from where the call begins, which an absent one means itself.
    Path,
    /// A whole number within bounds.
    Integer { min: u64, max: u64 },
    /// True or false.
    Flag,
}

/// Whether an argument can be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    Required,
    Optional,
}

/// An argument.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) need: Need,
    pub(crate) doc: &'static str,
}

/// The JSON Schema of a tool's arguments.
pub(crate) fn schema(fields: &[Field]) -> Value {
    let property = |field: &Field| {
        let doc = field.doc;
        let schema = match field.kind {
            Kind::Text { empty: true } => json!({"type": "string", "description": doc}),
            Kind::Text { empty: false } | Kind::Path => {
                json!({"type": "string", "minLength": 1, "description": doc})
            }
            Kind::Integer { min, max: u64::MAX } => {
                json!({"type": "integer", "minimum": min, "description": doc})
            }
            Kind::Integer { min, max } => {
                json!({"type": "integer", "minimum": min, "maximum": max, "description": doc})
            }
            Kind::Flag => json!({"type": "boolean", "description": doc}),
        };
        (field.name.to_owned(), schema)
    };
    let properties: Map<String, Value> = fields.iter().map(property).collect();
    let required = fields.iter().filter(|field| field.need == Need::Required);
    let required: Vec<_> = required.map(|field| field.name).collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// Arguments that were checked against their tool's table.
#[derive(Debug)]
pub(crate) struct Arguments(Map<String, Value>);

impl Arguments {
    /// A string, if it was given.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }

    /// A string that the check has found to be there.
    pub(crate) fn required(&self, name: &str) -> &str {
        self.text(name).expect("the check refuses calls without a required argument")
    }

    /// A number, if it was given.
    pub(crate) fn integer(&self, name: &str) -> Option<u64> {
        self.0.get(name).and_then(whole)
    }

    /// A flag; one that was not given is not set.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or(false)
    }
}

/// A whole number, also one written as `5.0`, as JSON Schema has it.
fn whole(value: &Value) -> Option<u64> {
    let float = || {
        let number = value.as_f64()?;
        let exact = number.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&number);
        // The range is checked: every whole float of 53 bits is that very integer.
        exact.then(|| format!("{number:.0}").parse().ok()).flatten()
    };
    value.as_u64().or_else(float)
}

/// Reads and checks arguments of a call that begins in `directory`. An optional one that is
/// `null` counts as left out.
///
/// # Errors
/// What the model is told: every fault, and the arguments that there are.
pub(crate) fn check(
    name: &str,
    fields: &[Field],
    text: &str,
    directory: Option<&str>,
) -> Result<Arguments, String> {
    let value = serde_json::from_str(text).map_err(|error| {
        format!("The arguments of `{name}` are no JSON: {error}.{}", allowed(fields))
    })?;
    let Value::Object(mut given) = value else {
        let found = described(&value);
        return Err(format!(
            "The arguments of `{name}` must be a JSON object, not {found}.{}",
            allowed(fields)
        ));
    };
    let mut faults = Vec::new();
    for key in given.keys() {
        if !fields.iter().any(|field| field.name == key) {
            faults.push(stranger(key, fields, &given));
        }
    }
    for field in fields {
        match given.get(field.name) {
            None | Some(Value::Null) if field.need == Need::Optional => {
                given.remove(field.name);
            }
            None => faults.push(format!("`{}` is missing", field.name)),
            Some(value) => faults.extend(fault(field, value)),
        }
    }
    if faults.is_empty() {
        let paths = fields.iter().filter(|field| field.kind == Kind::Path);
        for field in paths {
            let path = from(directory, given.get(field.name).and_then(Value::as_str));
            given.insert(field.name.to_owned(), Value::String(path));
        }
        return Ok(Arguments(given));
    }
    let faults: String = faults.iter().map(|fault| format!("\n- {fault}")).collect();
    Err(format!("Invalid arguments for `{name}`:{faults}{}", allowed(fields)))
}

/// What a path means in a call that begins in `directory`. One that begins at the workspace is
/// left as it is: there, a sandbox takes it for just that.
fn from(directory: Option<&str>, path: Option<&str>) -> String {
    match (directory, path) {
        (None, None) => WORKSPACE.to_owned(),
        (Some(directory), None) => directory.to_owned(),
        (Some(directory), Some(path)) if !path.starts_with('/') => format!("{directory}/{path}"),
        (_, Some(path)) => path.to_owned(),
    }
}

/// What is wrong with a value, if anything is.
fn fault(field: &Field, value: &Value) -> Option<String> {
    let name = field.name;
    let wrong = |expected: &str, hint: &str| {
        Some(format!("`{name}` must be {expected}, not {}{hint}", described(value)))
    };
    match (field.kind, value) {
        (Kind::Text { empty: false } | Kind::Path, Value::String(text)) if text.is_empty() => {
            Some(format!("`{name}` is empty"))
        }
        (Kind::Text { .. } | Kind::Path, Value::String(_)) | (Kind::Flag, Value::Bool(_)) => None,
        (Kind::Text { .. } | Kind::Path, _) => wrong("a string", ""),
        (Kind::Flag, Value::String(text)) if text == "true" || text == "false" => {
            wrong("true or false", &format!(": write {text} without quotes"))
        }
        (Kind::Flag, _) => wrong("true or false", ""),
        (Kind::Integer { min, max }, Value::Number(number)) => match whole(value) {
            Some(given) if (min..=max).contains(&given) => None,
            Some(_) => Some(format!("`{name}` is {number}, but must be {}", range(min, max))),
            None => Some(format!(
                "`{name}` is {number}, but must be a whole number, {}",
                range(min, max)
            )),
        },
        (Kind::Integer { .. }, Value::String(text)) if text.parse::<u64>().is_ok() => {
            wrong("an integer", &format!(": write {text} without quotes"))
        }
        (Kind::Integer { .. }, _) => wrong("an integer", ""),
    }
}

fn range(min: u64, max: u64) -> String {
    if max == u64::MAX { format!("{min} or more") } else { format!("{min} to {max}") }
}

fn described(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// The arguments that there are, as the last line of a complaint.
fn allowed(fields: &[Field]) -> String {
    let one = |field: &Field| {
        let kind = match field.kind {
            Kind::Text { .. } | Kind::Path => "string".to_owned(),
            Kind::Integer { min, max } => format!("integer, {}", range(min, max)),
            Kind::Flag => "boolean".to_owned(),
        };
        let need = if field.need == Need::Required { "required" } else { "optional" };
        format!("`{}` ({kind}, {need})", field.name)
    };
    let all: Vec<_> = fields.iter().map(one).collect();
    format!("\nIts arguments are: {}.", all.join(", "))
}

/// Other names that models use for an argument.
const SYNONYMS: &[(&str, &str)] = &[
    ("cmd", "command"),
    ("script", "command"),
    ("text", "content"),
    ("data", "content"),
    ("query", "pattern"),
    ("regex", "pattern"),
    ("include", "glob"),
    ("ignore_case", "case_insensitive"),
    ("-i", "case_insensitive"),
    ("fixed_strings", "literal"),
    ("dir", "path"),
    ("directory", "path"),
    ("filename", "file_path"),
];

/// Complains of an argument that there is not, and names the one that was meant.
fn stranger(key: &str, fields: &[Field], given: &Map<String, Value>) -> String {
    let shown: String = key.chars().take(60).collect();
    let free = || fields.iter().filter(|field| !given.contains_key(field.name));
    let synonym = || {
        let meant = SYNONYMS.iter().filter(|(other, _)| *other == key).map(|(_, name)| *name);
        meant.into_iter().find(|name| free().any(|field| field.name == *name))
    };
    let similar = || {
        let near = free().map(|field| (distance(key, field.name), field.name));
        let near = near.filter(|(distance, name)| {
            *distance <= name.len() / 3
                || (key.len() > 3 && (name.contains(key) || key.contains(name)))
        });
        near.min().map(|(_, name)| name)
    };
    match synonym().or_else(similar) {
        Some(name) => format!("there is no argument `{shown}`: did you mean `{name}`?"),
        None => format!("there is no argument `{shown}`"),
    }
}

/// How many letters must be put in, left out or changed (Levenshtein), for names
/// that are not absurdly long.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, letter) in one.chars().take(64).enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, wanted) in other.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *wanted);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}
