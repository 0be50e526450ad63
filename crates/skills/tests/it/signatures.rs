//! Who vouches for a skill.

use outrigger_skills::{SIGNATURE_FILE, SignatureError, SkillFile, sign, verify};

use crate::only;

const PRIVATE: [u8; 32] = [7; 32];

/// The public halves of the key above and of one of zeros.
fn keys() -> [[u8; 32]; 2] {
    [[8; 32], PRIVATE]
        .map(|key| ed25519_dalek::SigningKey::from_bytes(&key).verifying_key().to_bytes())
}

#[test]
fn a_signature_is_good_for_its_files_and_its_key_alone() {
    let mut files = only("---\nname: a\ndescription: b\n---\n");
    let signature = sign(&files, &PRIVATE);
    assert_eq!(verify(&files, signature.as_bytes(), &keys()), Ok(1));
    assert_eq!(verify(&files, signature.as_bytes(), &keys()[..1]), Err(SignatureError::Untrusted));
    assert_eq!(verify(&files, signature.as_bytes(), &[]), Err(SignatureError::Untrusted));
    // It lies beside what it signs.
    let file = SkillFile { bytes: signature.clone().into_bytes(), executable: false };
    files.insert(SIGNATURE_FILE.to_owned(), file);
    assert_eq!(verify(&files, signature.as_bytes(), &keys()), Ok(1));
    files.insert("x".to_owned(), SkillFile::default());
    assert_eq!(verify(&files, signature.as_bytes(), &keys()), Err(SignatureError::Untrusted));
}

#[test]
fn what_is_no_signature_is_refused() {
    let files = only("");
    let good = sign(&files, &PRIVATE);
    let short = &good[..127];
    let other = format!("g{}", &good[1..]);
    let signed = format!("+{}", &good[1..]);
    for text in ["", short, &other, &signed, &good.repeat(2), "é".repeat(64).as_str()] {
        assert_eq!(verify(&files, text.as_bytes(), &keys()), Err(SignatureError::Malformed));
    }
    assert_eq!(verify(&files, &[0xff; 128], &keys()), Err(SignatureError::Malformed));
    let zeros = "0".repeat(128);
    assert_eq!(verify(&files, zeros.as_bytes(), &[[0; 32]]), Err(SignatureError::Untrusted));
    // A key that is no point.
    assert_eq!(verify(&files, good.as_bytes(), &[[0xff; 32]]), Err(SignatureError::Untrusted));
}
