//! Names that nobody else has, from the kernel's randomness.

use std::io;

/// A name that nothing has.
pub(crate) fn random_name() -> io::Result<String> {
    let mut bytes = [0; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
