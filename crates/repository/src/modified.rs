//! When a file was changed, in an archive.

use std::io::{self, Read, Write};

/// Says it of the entry that is added next: build tools look to the nanosecond whether a file
/// is newer than what they made of it, for which a header has no room (POSIX.1-2017, pax).
/// Before 1970 nothing was.
pub(crate) fn set<W: Write>(
    builder: &mut tar::Builder<W>,
    header: &mut tar::Header,
    (seconds, nanoseconds): (i64, i64),
) -> io::Result<()> {
    let Ok(seconds) = u64::try_from(seconds) else {
        header.set_mtime(0);
        return Ok(());
    };
    header.set_mtime(seconds);
    if nanoseconds == 0 {
        return Ok(());
    }
    let text = format!("{seconds}.{nanoseconds:09}");
    builder.append_pax_extensions([("mtime", text.as_bytes())])
}

/// When a file of an archive was changed last, in nanoseconds since 1970; in whole seconds where
/// the archive says no more. `None` for a time that no file has.
///
/// # Errors
/// A damaged archive.
pub fn modified_ns(entry: &mut tar::Entry<'_, impl Read>) -> io::Result<Option<i64>> {
    let whole = entry.header().mtime()?;
    let mut precise = None;
    for extension in entry.pax_extensions()?.into_iter().flatten() {
        let extension = extension?;
        if extension.key() == Ok("mtime") {
            precise = extension.value().ok().and_then(nanoseconds);
        }
    }
    let whole = || i64::try_from(whole).ok()?.checked_mul(1_000_000_000);
    Ok(precise.or_else(whole))
}

/// Of a decimal number of seconds.
fn nanoseconds(text: &str) -> Option<i64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let nanos = format!("{part:0<9}").get(..9)?.parse::<u32>().ok()?;
    whole.parse::<i64>().ok()?.checked_mul(1_000_000_000)?.checked_add(i64::from(nanos))
}
