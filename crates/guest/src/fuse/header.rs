//! Requests of the kernel, as they stand in a buffer (linux/fuse.h, version 7.31 and later).
//!
//! Owns their form and nothing of their meaning. The kernel is trusted, and its bytes are
//! checked all the same: what is too short or not of this form is an error, never a panic.

/// Bits of `fuse_setattr_in.valid`.
pub(super) const SET_UID: u32 = 1 << 1;
pub(super) const SET_GID: u32 = 1 << 2;
pub(super) const SET_SIZE: u32 = 1 << 3;

/// Bit of `fuse_write_in.write_flags`: what was written to a mapping, by anybody.
pub(super) const WRITE_CACHE: u32 = 1;

/// What comes before every request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    /// Names the request.
    pub(super) unique: u64,
    /// What it is about.
    pub(super) node: u64,
    /// The thread that asks, as whoever mounted it sees it.
    pub(super) pid: u32,
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Request<'a> {
    Lookup {
        name: &'a [u8],
    },
    Forget {
        count: u64,
    },
    BatchForget {
        all: Vec<(u64, u64)>,
    },
    GetAttr,
    SetAttr(AttrChange),
    MakeNode {
        mode: u32,
        name: &'a [u8],
    },
    MakeFolder {
        name: &'a [u8],
    },
    Unlink {
        name: &'a [u8],
    },
    RemoveFolder {
        name: &'a [u8],
    },
    Rename {
        to: u64,
        flags: u32,
        old: &'a [u8],
        new: &'a [u8],
    },
    Open {
        flags: u32,
    },
    Create {
        flags: u32,
        name: &'a [u8],
    },
    Read {
        handle: u64,
        offset: u64,
        size: u32,
    },
    Write {
        handle: u64,
        offset: u64,
        flags: u32,
        data: &'a [u8],
    },
    Flush {
        handle: u64,
    },
    Sync {
        handle: u64,
    },
    Release {
        handle: u64,
    },
    OpenFolder,
    ReadFolder {
        handle: u64,
        offset: u64,
        size: u32,
        plus: bool,
    },
    ReleaseFolder {
        handle: u64,
    },
    SyncFolder,
    Access {
        mask: u32,
    },
    StatFs,
    Init {
        major: u32,
        minor: u32,
        readahead: u32,
        flags: u32,
    },
    Interrupt {
        unique: u64,
    },
    Destroy,
    /// Nothing that a served tree has.
    Refused {
        errno: i32,
    },
}

/// What is no request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MalformedRequest;

/// Numbers and names, one after the other.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn u32(&mut self) -> Result<u32, MalformedRequest> {
        let (value, rest) = self.0.split_first_chunk::<4>().ok_or(MalformedRequest)?;
        self.0 = rest;
        Ok(u32::from_ne_bytes(*value))
    }

    fn u64(&mut self) -> Result<u64, MalformedRequest> {
        let (value, rest) = self.0.split_first_chunk::<8>().ok_or(MalformedRequest)?;
        self.0 = rest;
        Ok(u64::from_ne_bytes(*value))
    }

    fn skip(&mut self, bytes: usize) -> Result<(), MalformedRequest> {
        self.0 = self.0.get(bytes..).ok_or(MalformedRequest)?;
        Ok(())
    }

    /// A name with the NUL at its end.
    fn name(&mut self) -> Result<&'a [u8], MalformedRequest> {
        let end = self.0.iter().position(|byte| *byte == 0).ok_or(MalformedRequest)?;
        let (name, rest) = self.0.split_at(end);
        self.0 = &rest[1..];
        if name.is_empty() || name.contains(&b'/') { Err(MalformedRequest) } else { Ok(name) }
    }

    fn data(&mut self, bytes: u32) -> Result<&'a [u8], MalformedRequest> {
        let (data, rest) = self.0.split_at_checked(bytes as usize).ok_or(MalformedRequest)?;
        self.0 = rest;
        Ok(data)
    }
}

/// Reads one request.
pub(super) fn parse(bytes: &[u8]) -> Result<(Header, Request<'_>), MalformedRequest> {
    let mut head = Bytes(bytes);
    let length = head.u32()? as usize;
    let opcode = head.u32()?;
    let (unique, node) = (head.u64()?, head.u64()?);
    head.skip(8)?;
    let pid = head.u32()?;
    head.skip(4)?;
    if length != bytes.len() {
        return Err(MalformedRequest);
    }
    Ok((Header { unique, node, pid }, body(opcode, head)?))
}

fn body(opcode: u32, mut b: Bytes<'_>) -> Result<Request<'_>, MalformedRequest> {
    Ok(match opcode {
        1 => Request::Lookup { name: b.name()? },
        2 => Request::Forget { count: b.u64()? },
        3 => Request::GetAttr,
        4 => set_attr(b)?,
        8 => {
            let mode = b.u32()?;
            b.skip(12)?;
            Request::MakeNode { mode, name: b.name()? }
        }
        9 => {
            b.skip(8)?;
            Request::MakeFolder { name: b.name()? }
        }
        10 => Request::Unlink { name: b.name()? },
        11 => Request::RemoveFolder { name: b.name()? },
        12 => Request::Rename { to: b.u64()?, flags: 0, old: b.name()?, new: b.name()? },
        14 => Request::Open { flags: b.u32()? },
        15 => read(b)?,
        16 => write(b)?,
        17 => Request::StatFs,
        18 => Request::Release { handle: b.u64()? },
        20 => Request::Sync { handle: b.u64()? },
        25 => Request::Flush { handle: b.u64()? },
        26 => init(b)?,
        27 => Request::OpenFolder,
        28 | 44 => match read(b)? {
            Request::Read { handle, offset, size } => {
                Request::ReadFolder { handle, offset, size, plus: opcode == 44 }
            }
            other => other,
        },
        29 => Request::ReleaseFolder { handle: b.u64()? },
        30 => Request::SyncFolder,
        34 => Request::Access { mask: b.u32()? },
        35 => {
            let flags = b.u32()?;
            b.skip(12)?;
            Request::Create { flags, name: b.name()? }
        }
        36 => Request::Interrupt { unique: b.u64()? },
        38 => Request::Destroy,
        42 => batch(b)?,
        45 => {
            let to = b.u64()?;
            let flags = b.u32()?;
            b.skip(4)?;
            Request::Rename { to, flags, old: b.name()?, new: b.name()? }
        }
        other => Request::Refused { errno: refusal(other) },
    })
}

/// What there is not, and how programs are told: some errors are remembered by the kernel,
/// which then does without, or by itself.
fn refusal(opcode: u32) -> i32 {
    match opcode {
        // Links, symbolic and hard.
        6 | 13 => libc::EPERM,
        5 => libc::EINVAL,
        39 => libc::ENOTTY,
        // Files without a name, and ranges that are copied in place.
        47 | 51 | 53 => libc::EOPNOTSUPP,
        _ => libc::ENOSYS,
    }
}

fn set_attr(mut b: Bytes<'_>) -> Result<Request<'_>, MalformedRequest> {
    let valid = b.u32()?;
    b.skip(12)?;
    let size = b.u64()?;
    // Lock owner, three times, their parts of a second, mode and a gap.
    b.skip(8 + 3 * 8 + 3 * 4 + 4 + 4)?;
    Ok(Request::SetAttr(AttrChange { valid, size, uid: b.u32()?, gid: b.u32()? }))
}

fn read(mut b: Bytes<'_>) -> Result<Request<'_>, MalformedRequest> {
    Ok(Request::Read { handle: b.u64()?, offset: b.u64()?, size: b.u32()? })
}

fn write(mut b: Bytes<'_>) -> Result<Request<'_>, MalformedRequest> {
    let (handle, offset, size, flags) = (b.u64()?, b.u64()?, b.u32()?, b.u32()?);
    b.skip(16)?;
    Ok(Request::Write { handle, offset, flags, data: b.data(size)? })
}

fn init(mut b: Bytes<'_>) -> Result<Request<'_>, MalformedRequest> {
    let (major, minor) = (b.u32()?, b.u32()?);
    Ok(Request::Init { major, minor, readahead: b.u32()?, flags: b.u32()? })
}

fn batch(mut b: Bytes<'_>) -> Result<Request<'_>, MalformedRequest> {
    let count = b.u32()?;
    b.skip(4)?;
    // Two numbers each, so that the buffer bounds what is made room for.
    if b.0.len() / 16 < count as usize {
        return Err(MalformedRequest);
    }
    let all = (0..count).map(|_| Ok((b.u64()?, b.u64()?)));
    Ok(Request::BatchForget { all: all.collect::<Result<_, MalformedRequest>>()? })
}

/// What is to become of attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AttrChange {
    pub(super) valid: u32,
    pub(super) size: u64,
    pub(super) uid: u32,
    pub(super) gid: u32,
}
