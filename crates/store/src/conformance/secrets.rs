//! What every home of secrets must do.

use crate::{Secrets, StoredSecret};

fn secret(organisation: &str, name: &str, sealed: &str, at_ms: u64) -> StoredSecret {
    StoredSecret {
        organisation: organisation.to_owned(),
        name: name.to_owned(),
        sealed: sealed.to_owned(),
        set_by: "person:ada".to_owned(),
        created_ms: at_ms,
        changed_ms: at_ms,
    }
}

/// Runs all checks.
///
/// # Panics
/// Where the home does not conform.
pub async fn secrets(secrets: &dyn Secrets) {
    let all = async |organisation| secrets.secrets(organisation).await.expect("it can be asked");
    assert_eq!(all("a").await, []);
    secrets.put_secret(secret("a", "TWO", "x", 1)).await.expect("it can be asked");
    secrets.put_secret(secret("a", "ONE", "y", 2)).await.expect("it can be asked");
    secrets.put_secret(secret("b", "ONE", "z", 3)).await.expect("it can be asked");
    // By name, and of nobody else.
    assert_eq!(all("a").await, [secret("a", "ONE", "y", 2), secret("a", "TWO", "x", 1)]);
    secrets.put_secret(secret("a", "ONE", "new", 9)).await.expect("it can be asked");
    let changed = StoredSecret { created_ms: 2, ..secret("a", "ONE", "new", 9) };
    assert_eq!(all("a").await[0], changed);
    assert!(secrets.remove_secret("a", "ONE").await.expect("it can be asked"));
    assert!(!secrets.remove_secret("a", "ONE").await.expect("it can be asked"));
    assert_eq!(all("a").await, [secret("a", "TWO", "x", 1)]);
    assert_eq!(all("b").await, [secret("b", "ONE", "z", 3)]);
}
