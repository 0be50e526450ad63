//! What every home of keys must do.

use outrigger_agent::Digest;

use crate::{KeyKind, Keys, StoredKey};

fn key(id: &str, kind: KeyKind, made_ms: u64, expires_ms: u64) -> StoredKey {
    StoredKey {
        id: id.to_owned(),
        digest: Digest::of(id.as_bytes()),
        kind,
        person: "person:ada".to_owned(),
        label: format!("for {id}"),
        created_ms: made_ms,
        expires_ms,
    }
}

/// Runs all checks.
///
/// # Panics
/// Where the home does not conform.
pub async fn keys(keys: &dyn Keys) {
    let one = key("one", KeyKind::Link, 1, 100);
    let two = key("two", KeyKind::Browser, 2, 200);
    assert_eq!(keys.keys(0).await.expect("it can be asked"), []);
    keys.put_key(two.clone()).await.expect("it can be asked");
    keys.put_key(one.clone()).await.expect("it can be asked");
    assert_eq!(keys.keys(9).await.expect("it can be asked"), [one.clone(), two.clone()]);
    keys.put_key(one.clone()).await.expect_err("there is one of its digest");

    let of = async |id: &str, now_ms| {
        keys.key(&Digest::of(id.as_bytes()), now_ms).await.expect("it can be asked")
    };
    assert_eq!(of("one", 99).await, Some(one.clone()));
    assert_eq!((of("one", 100).await, of("other", 0).await), (None, None));
    assert_eq!(keys.keys(100).await.expect("it can be asked"), std::slice::from_ref(&two));

    // Each is used up once.
    assert!(keys.remove_key("one").await.expect("it can be asked"));
    assert!(!keys.remove_key("one").await.expect("it can be asked"));
    assert_eq!(of("one", 0).await, None);

    // A new one sweeps away what expired before it.
    let three = key("three", KeyKind::Bearer, 200, 300);
    keys.put_key(three.clone()).await.expect("it can be asked");
    assert_eq!(keys.keys(0).await.expect("it can be asked"), [three]);
    assert!(keys.remove_key("three").await.expect("it can be asked"));
}
