//! Who vouches for a skill: an Ed25519 signature over its digest, in a file beside it.
//!
//! Owns the form of that file, which is ours; the specification has none. Must never
//! decide whom to trust: the keys are handed in.

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};

use crate::files::{SkillFiles, digest};
use crate::limits::SIGNATURE_BYTES_MAX;

/// What is signed in front of the digest, so that a signature means nothing elsewhere.
const CONTEXT: &[u8] = b"outrigger skill signature 1\n";

/// Why a skill is not vouched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// The file is no signature.
    #[error("the signature is not 128 hexadecimal digits")]
    Malformed,
    /// No trusted key made it over these files.
    #[error("the signature over these files is from none of the trusted keys")]
    Untrusted,
}

fn signed(files: &SkillFiles) -> Vec<u8> {
    [CONTEXT, &digest(files)].concat()
}

/// The content of [`crate::SIGNATURE_FILE`] for these files.
#[must_use]
pub fn sign(files: &SkillFiles, key: &[u8; 32]) -> String {
    let signature = SigningKey::from_bytes(key).sign(&signed(files));
    let mut text: String = signature.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    text.push('\n');
    text
}

/// Which of the trusted keys signed these files, by its place.
///
/// # Errors
///
/// If the text is no signature, or none of the keys made it over these files. A key that is
/// no point of the curve has made nothing.
pub fn verify(
    files: &SkillFiles,
    signature: &[u8],
    trusted: &[[u8; 32]],
) -> Result<usize, SignatureError> {
    let signature = decode(signature).ok_or(SignatureError::Malformed)?;
    let signed = signed(files);
    let made = |key: &[u8; 32]| {
        VerifyingKey::from_bytes(key)
            .is_ok_and(|key| key.verify_strict(&signed, &signature).is_ok())
    };
    trusted.iter().position(made).ok_or(SignatureError::Untrusted)
}

fn decode(text: &[u8]) -> Option<Signature> {
    if text.len() > SIGNATURE_BYTES_MAX {
        return None;
    }
    let text = std::str::from_utf8(text).ok()?.trim_end();
    if text.len() != 128 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; 64];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).ok()?;
    }
    Some(Signature::from_bytes(&bytes))
}
