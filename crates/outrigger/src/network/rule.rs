//! A host in a person's own configuration file.
//!
//! Owns the change of `network` in its `[sandbox]`, which leaves all else as it is, comments
//! too.

use std::io::ErrorKind;
use std::path::PathBuf;
use toml_edit::{Array, DocumentMut, Item, Table, Value};

use crate::command::finish::write;
use crate::config;
use crate::exit::{Failure, Kind, Outcome};
use crate::paths::Paths;

/// Lets the sandboxes of sessions to come reach a host. Gives the file.
pub(crate) fn add(paths: &Paths, host: &str) -> Outcome<PathBuf> {
    let place = paths.config_places().last().expect("there is always one");
    let storage = |error: std::io::Error| {
        Failure::new(Kind::Storage, format!("{}: {error}", place.display()))
    };
    let text = match std::fs::read_to_string(place) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        Err(error) => return Err(storage(error)),
    };
    let changed = with_host(&text, host).ok_or_else(|| {
        let text = format!("{} is not changed: it has no one `[sandbox]`", place.display());
        Failure::new(Kind::Usage, text).hint(format!("Write {host:?} into `network` there."))
    })?;
    config::parse::<config::File>(&changed, place, "Nothing was written.")?;
    write(place, changed.as_bytes()).map_err(storage)?;
    Ok(place.clone())
}

/// The file with a host more. `None`: it is no place for one.
fn with_host(text: &str, host: &str) -> Option<String> {
    let mut document: DocumentMut = text.parse().ok()?;
    let table = || Item::Table(Table::new());
    let sandbox = document.entry("sandbox").or_insert_with(table).as_table_like_mut()?;
    let network = sandbox.entry("network").or_insert_with(|| Item::Value(Array::new().into()));
    let value = network.as_value_mut()?;
    if let Value::String(one) = value {
        let one = one.value().clone();
        *value = Value::from_iter([one]);
    }
    let hosts = value.as_array_mut()?;
    // `none` stands alone.
    hosts.retain(|word| word.as_str() != Some("none"));
    if !hosts.iter().any(|word| word.as_str() == Some(host)) {
        hosts.push(host);
    }
    Some(document.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(text: &str, expected: &Expect) {
        expected.assert_eq(&with_host(text, "a.test").unwrap());
    }

    #[test]
    fn only_the_network_changes() {
        check(
            "",
            &expect![[r#"
            [sandbox]
            network = ["a.test"]
        "#]],
        );
        let mine = "# mine\n[sandbox] # here\ncpus_max = 2 # cores\n";
        check(
            mine,
            &expect![[r#"
            # mine
            [sandbox] # here
            cpus_max = 2 # cores
            network = ["a.test"]
        "#]],
        );
        check(
            "[sandbox]\nnetwork = [\"packages\"] # why\n",
            &expect![[r#"
            [sandbox]
            network = ["packages", "a.test"] # why
        "#]],
        );
        check(
            "[sandbox]\nnetwork = \"none\"\n",
            &expect![[r#"
            [sandbox]
            network = ["a.test"]
        "#]],
        );
        let once = "[sandbox]\nnetwork = [\"a.test\"]\n";
        check(
            once,
            &expect![[r#"
            [sandbox]
            network = ["a.test"]
        "#]],
        );
        assert_eq!(with_host("[[sandbox]]\nname = \"a\"\n", "a.test"), None);
    }
}
