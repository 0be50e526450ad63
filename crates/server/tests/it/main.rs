//! What the server says of itself.

use std::collections::BTreeSet;

use expect_test::expect_file;
use serde_json::Value;

/// The contract that is checked in is the one that is served. `UPDATE_EXPECT=1` writes it anew.
#[test]
fn the_contract_is_checked_in() {
    expect_file!["../../../../docs/openapi.json"].assert_eq(&outrigger_server::openapi());
}

/// Whoever makes a client of the contract finds everything that it refers to, and a function of
/// its own for each operation.
#[test]
fn the_contract_has_what_it_refers_to_and_every_name_once() {
    let contract: Value = serde_json::from_str(&outrigger_server::openapi()).unwrap();
    let mut references = BTreeSet::new();
    collect(&contract, &mut references);
    let missing: Vec<_> = references
        .iter()
        .filter(|it| contract.pointer(it.trim_start_matches('#')).is_none())
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
    let methods = contract["paths"].as_object().unwrap().values();
    let operations = methods.flat_map(|methods| methods.as_object().unwrap().values());
    let mut names: Vec<_> = operations.map(|it| it["operationId"].as_str().unwrap()).collect();
    names.sort_unstable();
    let twice: Vec<_> = names.windows(2).filter(|pair| pair[0] == pair[1]).collect();
    assert!(twice.is_empty(), "{twice:?}");
}

fn collect(value: &Value, references: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            references.extend(fields.get("$ref").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|field| collect(field, references));
        }
        Value::Array(values) => values.iter().for_each(|value| collect(value, references)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
