//! Objects of the contract that stand in others: from an object alone. A derived reader would take
//! a list of the values of its fields as well.

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

fn read<T: DeserializeOwned, E: Error>(object: Map<String, Value>) -> Result<T, E> {
    serde_json::from_value(Value::Object(object)).map_err(E::custom)
}

/// One.
pub(crate) fn one<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<T, D::Error> {
    Map::deserialize(from).and_then(read)
}

/// One, or none.
pub(crate) fn maybe<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    from: D,
) -> Result<Option<T>, D::Error> {
    Option::<Map<String, Value>>::deserialize(from)?.map(read).transpose()
}

/// A list of them.
pub(crate) fn all<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    from: D,
) -> Result<Vec<T>, D::Error> {
    Vec::<Map<String, Value>>::deserialize(from)?.into_iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use crate::CreateSession;

    #[test]
    fn a_list_is_no_object() {
        let read = |text: &str| serde_json::from_str::<CreateSession>(text).is_ok();
        assert!(read(r#"{"text":"a","limits":{},"workspace":null,"data":[]}"#));
        assert!(read(r#"{"text":"a","data":[{"name":"n","text":"t"}]}"#));
        for wrong in [
            r#"{"text":"a","limits":[1]}"#,
            r#"{"text":"a","data":[["n","t"]]}"#,
            r#"{"text":"a","workspace":["i","s","p"]}"#,
            r#"{"text":"a","workspace":{"id":"i","source":"s","trusted":[["p","d"]]}}"#,
        ] {
            assert!(!read(wrong), "{wrong}");
        }
    }
}
