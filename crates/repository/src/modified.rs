//! When a file was changed, in an archive.

use std::io::{self, Write};

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
