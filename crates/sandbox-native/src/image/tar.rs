//! Reading tar streams that may be hostile.
//!
//! Owns the format: ustar, PAX (POSIX.1-2017 `pax`, "pax Interchange Format") and the
//! long names of GNU tar. What readers of the world take differently is refused, not
//! guessed: two names for one entry, links with data, sparse files, damaged numbers.
//! Touches no file system and judges no path; holds at most one named limit of memory.

use std::io::{self, Read};

use crate::limits;

const BLOCK: usize = 512;

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Directory,
    Symlink,
    /// A hard link; [`Entry::link`] is a path in the archive.
    Hard,
    /// A device node or FIFO.
    Special,
}

/// A header, with what came before to extend it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) path: Vec<u8>,
    pub(crate) link: Vec<u8>,
    pub(crate) kind: Kind,
    /// The twelve bits of chmod(2).
    pub(crate) mode: u32,
    pub(crate) uid: u64,
    pub(crate) gid: u64,
    /// Seconds since 1970, and nanoseconds.
    pub(crate) mtime: (i64, i64),
    /// Bytes of data that follow.
    pub(crate) size: u64,
}

/// What is wrong with a stream.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// Below the format: the source or a decoder failed.
    #[error("cannot read: {0}")]
    Read(#[from] io::Error),
    /// Not a tar archive, or not one that can be read in one way only.
    #[error("malformed at byte {at}: {reason}")]
    Malformed { at: u64, reason: &'static str },
}

/// Gives the entries of a stream one after the other. It is itself the reader of the
/// current entry's data.
#[derive(Debug)]
pub(crate) struct Reader<R> {
    stream: R,
    at: u64,
    /// Bytes of data of the current entry that were not read yet.
    left: u64,
    /// Bytes that fill its last block.
    padding: u64,
    ended: bool,
}

/// What extension headers said about the next entry.
#[derive(Debug, Default)]
struct ExtensionHeaders {
    path: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    size: Option<u64>,
    uid: Option<u64>,
    gid: Option<u64>,
    mtime: Option<(i64, i64)>,
    pax: bool,
}

type Block = [u8; BLOCK];
/// Key and value of an extension.
type Record<'a> = (&'a [u8], &'a [u8]);

impl<R: Read> Reader<R> {
    pub(crate) fn new(stream: R) -> Self {
        Self { stream, at: 0, left: 0, padding: 0, ended: false }
    }

    /// Bytes from the start to the next that will be read: within `next`'s entry, where its data begin.
    pub(crate) fn position(&self) -> u64 {
        self.at
    }

    /// Whether the end mark was seen. An archive without one may have been cut.
    pub(crate) fn ended(&self) -> bool {
        self.ended
    }

    /// Reads what follows the end mark, so that the source is digested whole.
    pub(crate) fn drain(mut self) -> io::Result<R> {
        io::copy(&mut self.stream, &mut io::sink())?;
        Ok(self.stream)
    }

    fn malformed<T>(&self, reason: &'static str) -> Result<T, Error> {
        Err(Error::Malformed { at: self.at, reason })
    }

    /// The next entry, past what is left of the current one. `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Entry>, Error> {
        let mut extended = ExtensionHeaders::default();
        loop {
            if self.ended {
                return Ok(None);
            }
            self.skip()?;
            let Some(block) = self.block()? else { return Ok(None) };
            if block == [0; BLOCK] {
                self.ended = true;
                return Ok(None);
            }
            self.check(&block)?;
            let size = self.number(&block[124..136])?;
            match block[156] {
                b'x' => self.local(size, &mut extended)?,
                b'g' => self.global(size)?,
                b'L' if extended.path.is_none() => extended.path = Some(self.long(size)?),
                b'K' if extended.link.is_none() => extended.link = Some(self.long(size)?),
                b'L' | b'K' => return self.malformed("an entry has two names"),
                flag => return self.entry(&block, flag, size, extended).map(Some),
            }
        }
    }

    fn skip(&mut self) -> Result<(), Error> {
        let rest = self.left + self.padding;
        let skipped = io::copy(&mut (&mut self.stream).take(rest), &mut io::sink())?;
        self.at += skipped;
        if skipped != rest {
            return self.malformed("the archive was cut inside an entry");
        }
        (self.left, self.padding) = (0, 0);
        Ok(())
    }

    /// A whole block; `None` if nothing follows.
    fn block(&mut self) -> Result<Option<Block>, Error> {
        let mut block = [0; BLOCK];
        let mut got = 0;
        while got < BLOCK {
            match self.stream.read(&mut block[got..]) {
                Ok(0) if got == 0 => return Ok(None),
                Ok(0) => return self.malformed("the archive was cut inside a header"),
                Ok(more) => got += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.at += BLOCK as u64;
        Ok(Some(block))
    }

    /// The checksum, which some old programs summed over signed bytes.
    fn check(&self, block: &Block) -> Result<(), Error> {
        let told = self.number(&block[148..156])?;
        let rest = || block[..148].iter().chain(&block[156..]);
        let unsigned = 256 + rest().map(|byte| i64::from(*byte)).sum::<i64>();
        let signed = 256 + rest().map(|byte| i64::from(byte.cast_signed())).sum::<i64>();
        if [unsigned, signed].iter().any(|sum| u64::try_from(*sum) == Ok(told)) {
            return Ok(());
        }
        self.malformed("the checksum of a header is wrong")
    }

    /// Octal digits between spaces and NULs, or big-endian binary after a byte 0x80.
    fn number(&self, field: &[u8]) -> Result<u64, Error> {
        if field[0] & 0x80 != 0 {
            let (high, low) = field.split_at(field.len() - 8);
            let mut bytes = [0; 8];
            bytes.copy_from_slice(low);
            let value = u64::from_be_bytes(bytes);
            let small = match high {
                [] => field[0] == 0x80 && value & (0xff << 56) == 0x80 << 56,
                [first, rest @ ..] => *first == 0x80 && rest.iter().all(|byte| *byte == 0),
            };
            let value = if high.is_empty() { value & !(0xff << 56) } else { value };
            return match small && value <= i64::MAX.cast_unsigned() {
                true => Ok(value),
                false => self.malformed("a number is negative or too large"),
            };
        }
        let digits = field.trim_ascii_start();
        let end = digits.iter().position(|byte| matches!(byte, 0 | b' ')).unwrap_or(digits.len());
        let (digits, rest) = digits.split_at(end);
        if !rest.iter().all(|byte| matches!(byte, 0 | b' ')) {
            return self.malformed("a number is damaged");
        }
        let mut value = 0_u64;
        for digit in digits {
            match digit {
                b'0'..=b'7' => value = value << 3 | u64::from(digit - b'0'),
                _ => return self.malformed("a number is damaged"),
            }
        }
        Ok(value)
    }

    /// Modification times may be before 1970; such are not worth a refusal.
    fn time(&self, field: &[u8]) -> Result<(i64, i64), Error> {
        if field[0] & 0x80 != 0 && self.number(field).is_err() {
            return Ok((0, 0));
        }
        Ok((self.number(field)?.cast_signed(), 0))
    }

    /// The data of an extension header.
    fn extension(&mut self, size: u64) -> Result<Vec<u8>, Error> {
        if size > limits::LAYER_EXTENSION_BYTES_MAX {
            return self.malformed("an extension header is too long");
        }
        (self.left, self.padding) = (size, size.next_multiple_of(BLOCK as u64) - size);
        let mut data = Vec::new();
        self.read_to_end(&mut data)?;
        Ok(data)
    }

    fn long(&mut self, size: u64) -> Result<Vec<u8>, Error> {
        let mut data = self.extension(size)?;
        let end = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
        if data[end..].iter().any(|byte| *byte != 0) {
            return self.malformed("a name holds a NUL");
        }
        data.truncate(end);
        Ok(data)
    }

    /// Global headers may not rename or resize: what would they mean?
    fn global(&mut self, size: u64) -> Result<(), Error> {
        let data = self.extension(size)?;
        for (key, _) in self.records(&data)? {
            if matches!(key, b"path" | b"linkpath" | b"size") || key.starts_with(b"GNU.sparse.") {
                return self.malformed("a global header renames or resizes entries");
            }
        }
        Ok(())
    }

    fn local(&mut self, size: u64, extended: &mut ExtensionHeaders) -> Result<(), Error> {
        if std::mem::replace(&mut extended.pax, true) {
            return self.malformed("an entry has two extension headers");
        }
        let data = self.extension(size)?;
        for (key, value) in self.records(&data)? {
            match key {
                b"path" if extended.path.is_none() => extended.path = Some(value.to_vec()),
                b"linkpath" if extended.link.is_none() => extended.link = Some(value.to_vec()),
                b"path" | b"linkpath" => return self.malformed("an entry has two names"),
                b"size" => extended.size = Some(self.decimal(value)?),
                b"uid" => extended.uid = Some(self.decimal(value)?),
                b"gid" => extended.gid = Some(self.decimal(value)?),
                b"mtime" => extended.mtime = Some(time(value)),
                key if key.starts_with(b"GNU.sparse.") => {
                    return self.malformed("sparse files are not read");
                }
                // Extended attributes too: capabilities and the overlay's own marks among them.
                _ => {}
            }
        }
        Ok(())
    }

    /// `<length> <key>=<value>\n`, the length counting itself.
    fn records<'a>(&self, mut data: &'a [u8]) -> Result<Vec<Record<'a>>, Error> {
        let mut records = Vec::new();
        while !data.is_empty() {
            let Some(space) = data.iter().take(8).position(|byte| *byte == b' ') else {
                return self.malformed("an extension record has no length");
            };
            let length = self.decimal(&data[..space])? as usize;
            let record = data.get(space + 1..length).and_then(|record| record.strip_suffix(b"\n"));
            let equals = record.and_then(|record| record.iter().position(|byte| *byte == b'='));
            let (Some(record), Some(equals)) = (record, equals) else {
                return self.malformed("an extension record is damaged");
            };
            let value = &record[equals + 1..];
            records.push((&record[..equals], value));
            data = &data[length..];
        }
        Ok(records)
    }

    fn decimal(&self, text: &[u8]) -> Result<u64, Error> {
        let digits = std::str::from_utf8(text).ok();
        let digits = digits.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        match digits.and_then(|text| text.parse::<i64>().ok()) {
            Some(value) => Ok(value.cast_unsigned()),
            None => self.malformed("a number of an extension record is damaged"),
        }
    }

    fn entry(
        &mut self,
        block: &Block,
        flag: u8,
        size: u64,
        extended: ExtensionHeaders,
    ) -> Result<Entry, Error> {
        let path = extended.path.unwrap_or_else(|| name(block));
        let link = extended.link.unwrap_or_else(|| text(&block[157..257]).to_vec());
        if path.contains(&0) || link.contains(&0) {
            return self.malformed("a name holds a NUL");
        }
        let kind = match flag {
            // Before ustar a directory was a file whose name ends in a slash.
            b'0' | 0 | b'7' if path.ends_with(b"/") => Kind::Directory,
            b'0' | 0 | b'7' => Kind::File,
            b'1' => Kind::Hard,
            b'2' => Kind::Symlink,
            b'3' | b'4' | b'6' => Kind::Special,
            b'5' => Kind::Directory,
            b'S' => return self.malformed("sparse files are not read"),
            _ => return self.malformed("an entry is of an unknown type"),
        };
        let size = extended.size.unwrap_or(size);
        if kind != Kind::File && size != 0 {
            return self.malformed("an entry that is no file has data");
        }
        let Some(whole) = size.checked_next_multiple_of(BLOCK as u64) else {
            return self.malformed("a number is negative or too large");
        };
        let entry = Entry {
            path,
            link,
            kind,
            mode: (self.number(&block[100..108])? & 0o7777) as u32,
            uid: extended.uid.map_or_else(|| self.number(&block[108..116]), Ok)?,
            gid: extended.gid.map_or_else(|| self.number(&block[116..124]), Ok)?,
            mtime: extended.mtime.map_or_else(|| self.time(&block[136..148]), Ok)?,
            size,
        };
        (self.left, self.padding) = (size, whole - size);
        Ok(entry)
    }
}

impl<R: Read> Read for Reader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let got = self.stream.read(&mut buffer[..wanted])?;
        if got == 0 && wanted > 0 {
            let reason = "the archive was cut inside an entry";
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, reason));
        }
        self.left -= got as u64;
        self.at += got as u64;
        Ok(got)
    }
}

/// A field up to its first NUL.
fn text(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or(field)
}

/// The name in the header itself, with the prefix that POSIX and star put before it.
fn name(block: &Block) -> Vec<u8> {
    let name = text(&block[..100]);
    let prefix = match &block[257..263] {
        b"ustar\0" if &block[508..] == b"tar\0" => text(&block[345..476]),
        b"ustar\0" => text(&block[345..500]),
        _ => &[],
    };
    if prefix.is_empty() { name.to_vec() } else { [prefix, b"/", name].concat() }
}

/// A decimal time; what can't be read is 1970, not worth a refusal. Before that there are whole
/// seconds.
fn time(value: &[u8]) -> (i64, i64) {
    let text = std::str::from_utf8(value).unwrap_or_default();
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let seconds = whole.parse().unwrap_or(0);
    let part = format!("{part:0<9}");
    let digits = part.get(..9).filter(|it| it.bytes().all(|byte| byte.is_ascii_digit()));
    let nanoseconds = digits.and_then(|it| it.parse().ok()).filter(|_| seconds >= 0);
    (seconds, nanoseconds.unwrap_or(0))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use expect_test::expect;
    use proptest::prelude::*;

    /// One entry, as any program could write it.
    pub(crate) struct RawHeader<'a> {
        pub(crate) path: &'a [u8],
        pub(crate) flag: u8,
        pub(crate) link: &'a [u8],
        pub(crate) data: &'a [u8],
        /// Bytes that the header claims; those of `data` else.
        pub(crate) size: Option<u64>,
        pub(crate) uid: u64,
        pub(crate) mode: u32,
    }

    pub(crate) fn raw<'a>(flag: u8, path: &'a str, rest: &'a str) -> RawHeader<'a> {
        let (link, data) = if matches!(flag, b'1' | b'2') {
            (rest.as_bytes(), &b""[..])
        } else {
            (&b""[..], rest.as_bytes())
        };
        RawHeader { path: path.as_bytes(), flag, link, data, size: None, uid: 0, mode: 0o644 }
    }

    /// An archive of them, with its end mark.
    pub(crate) fn build(entries: &[RawHeader<'_>]) -> Vec<u8> {
        let mut archive = Vec::new();
        for entry in entries {
            let mut header = tar::Header::new_ustar();
            header.set_entry_type(tar::EntryType::new(entry.flag));
            let fields = header.as_old_mut();
            fields.name[..entry.path.len()].copy_from_slice(entry.path);
            fields.linkname[..entry.link.len()].copy_from_slice(entry.link);
            header.set_size(entry.size.unwrap_or(entry.data.len() as u64));
            header.set_uid(entry.uid);
            header.set_gid(0);
            header.set_mode(entry.mode);
            header.set_mtime(1_000_000);
            header.set_cksum();
            archive.extend_from_slice(header.as_bytes());
            archive.extend_from_slice(entry.data);
            archive.resize(archive.len().next_multiple_of(BLOCK), 0);
        }
        archive.resize(archive.len() + 2 * BLOCK, 0);
        archive
    }

    fn read(archive: &[u8]) -> Result<Vec<(Entry, Vec<u8>)>, Error> {
        let mut reader = Reader::new(archive);
        let mut all = Vec::new();
        while let Some(entry) = reader.next()? {
            let mut data = Vec::new();
            reader.read_to_end(&mut data)?;
            all.push((entry, data));
        }
        Ok(all)
    }

    fn record(key: &str, value: &str) -> String {
        let rest = key.len() + value.len() + 3;
        let length = (rest..).find(|length| length.to_string().len() + rest == *length);
        format!("{} {key}={value}\n", length.unwrap())
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_refused() {
        let sparse = record("GNU.sparse.major", "1");
        let long = "x".repeat(90);
        let cases: &[(&str, Vec<u8>)] = &[
            ("cut in data", build(&[raw(b'0', "a", &long)])[..540].to_vec()),
            ("cut in header", build(&[raw(b'0', "a", "")])[..300].to_vec()),
            ("sparse", build(&[raw(b'S', "a", "")])),
            ("pax sparse", build(&[raw(b'x', "p", &sparse), raw(b'0', "a", "")])),
            ("link with data", build(&[RawHeader { size: Some(512), ..raw(b'1', "a", "b") }])),
            ("unknown type", build(&[raw(b'V', "a", "")])),
            ("two names", {
                let path = record("path", "b");
                build(&[raw(b'L', "l", "c\0"), raw(b'x', "p", &path), raw(b'0', "a", "")])
            }),
            ("two headers", {
                let path = record("path", "b");
                build(&[raw(b'x', "p", &path), raw(b'x', "p", &path), raw(b'0', "a", "")])
            }),
            ("NUL", {
                let path = record("path", "b\0c");
                build(&[raw(b'x', "p", &path), raw(b'0', "a", "")])
            }),
            ("negative", {
                let size = record("size", "-1");
                build(&[raw(b'x', "p", &size), raw(b'0', "a", "")])
            }),
            ("global size", build(&[raw(b'g', "p", &record("size", "512")), raw(b'0', "a", "")])),
            ("record", build(&[raw(b'x', "p", "99 path=b\n"), raw(b'0', "a", "")])),
            ("overflow", build(&[raw(b'x', "p", "99999999 path=b\n"), raw(b'0', "a", "")])),
            ("huge extension", build(&[RawHeader { size: Some(8 << 30), ..raw(b'x', "p", "") }])),
        ];
        let said: String = cases
            .iter()
            .map(|(name, archive)| format!("{name}: {}\n", read(archive).unwrap_err()))
            .collect();
        expect![[r#"
            cut in data: cannot read: the archive was cut inside an entry
            cut in header: malformed at byte 0: the archive was cut inside a header
            sparse: malformed at byte 512: sparse files are not read
            pax sparse: malformed at byte 534: sparse files are not read
            link with data: malformed at byte 512: an entry that is no file has data
            unknown type: malformed at byte 512: an entry is of an unknown type
            two names: malformed at byte 1545: an entry has two names
            two headers: malformed at byte 1536: an entry has two extension headers
            NUL: malformed at byte 1536: a name holds a NUL
            negative: malformed at byte 523: a number of an extension record is damaged
            global size: malformed at byte 524: a global header renames or resizes entries
            record: malformed at byte 522: an extension record is damaged
            overflow: malformed at byte 528: an extension record has no length
            huge extension: malformed at byte 512: an extension header is too long
        "#]]
        .assert_eq(&said);
    }

    #[test]
    fn longer_names_and_sizes_come_from_extensions() {
        let (long, deep) = ("n".repeat(300), "d/".repeat(120));
        let records = record("path", &long) + &record("uid", "77") + &record("mtime", "5.25");
        let archive = build(&[
            raw(b'g', "g", &record("comment", "x")),
            raw(b'x', "p", &records),
            raw(b'0', "short", "data"),
            raw(b'L', "l", &deep),
            raw(b'5', "short", ""),
        ]);
        let entries = read(&archive).unwrap();
        let [(file, data), (dir, _)] = &entries[..] else { panic!("{entries:?}") };
        assert_eq!((&file.path[..], file.uid, file.mtime), (long.as_bytes(), 77, (5, 250_000_000)));
        assert_eq!(
            (&dir.path[..], dir.kind, &data[..]),
            (deep.as_bytes(), Kind::Directory, &b"data"[..])
        );
        // The size of an extension is the one that counts, for what follows too.
        let inner = build(&[raw(b'0', "hidden", "")]);
        let size = record("size", &inner.len().to_string());
        let mut archive = build(&[raw(b'x', "p", &size), raw(b'0', "outer", "")]);
        archive.truncate(archive.len() - 2 * BLOCK);
        archive.extend_from_slice(&inner);
        let entries = read(&archive).unwrap();
        assert_eq!(entries.len(), 1);
        assert_eq!(entries[0].1, inner);
    }

    proptest! {
        #[test]
        fn bytes_of_any_kind_neither_panic_nor_run_on(bytes in prop::collection::vec(any::<u8>(), 0..4096)) {
            let _ = read(&bytes);
        }

        #[test]
        fn a_changed_archive_is_read_or_refused(
            changes in prop::collection::vec((0_usize..8192, any::<u8>()), 1..6),
            fix in any::<bool>(),
        ) {
            let records = record("path", "long") + &record("size", "700");
            let data = "d".repeat(700);
            let mut archive = build(&[
                raw(b'5', "dir/", ""),
                raw(b'x', "p", &records),
                raw(b'0', "dir/file", &data),
                raw(b'L', "l", "other\0"),
                raw(b'2', "link", "dir/file"),
                raw(b'1', "hard", "dir/file"),
            ]);
            let length = archive.len();
            for (at, byte) in changes {
                archive[at % length] = byte;
            }
            if fix {
                // Headers whose checksum fits again.
                for at in (0..length).step_by(BLOCK) {
                    let mut header = tar::Header::from_byte_slice(&archive[at..at + BLOCK]).clone();
                    header.set_cksum();
                    archive[at..at + BLOCK].copy_from_slice(header.as_bytes());
                }
            }
            let _ = read(&archive);
        }

        #[test]
        fn what_others_write_is_read_as_they_mean_it(
            files in prop::collection::vec(("[a-z]{1,12}(/[a-zé]{1,60}){0,4}", prop::collection::vec(any::<u8>(), 0..1500)), 0..8),
        ) {
            let mut writer = tar::Builder::new(Vec::new());
            for (path, data) in &files {
                let mut header = tar::Header::new_gnu();
                header.set_size(data.len() as u64);
                header.set_mode(0o640);
                writer.append_data(&mut header, path, &data[..]).unwrap();
            }
            let archive = writer.into_inner().unwrap();
            let found = read(&archive).unwrap();
            let found: Vec<_> = found.into_iter().map(|(entry, data)| (String::from_utf8(entry.path).unwrap(), data)).collect();
            prop_assert_eq!(found, files);
        }
    }
}
