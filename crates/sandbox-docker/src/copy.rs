//! Disks as archives: filled, copied from one set of volumes to another, and summed up.
//!
//! One archive is all of a disk: the daemon's hold what is above the volumes with what is
//! in them.

use std::io::{self, BufWriter, Read, Write};

use bollard::query_parameters::{DownloadFromContainerOptions, UploadToContainerOptions};
use futures_util::{StreamExt, stream};
use outrigger_sandbox::Error;
use tokio::sync::mpsc;

use crate::archive::{self, Owners, Sum};
use crate::engine::Engine;
use crate::names::Store;
use crate::user::KEPT;
use crate::{limits, maker, names};

/// Pieces of an archive as they come, as something to be read on a thread.
struct Pieces<B> {
    pieces: mpsc::Receiver<io::Result<B>>,
    piece: Option<B>,
    read: usize,
}

impl<B: AsRef<[u8]>> Read for Pieces<B> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(piece) = &self.piece {
                let rest = &piece.as_ref()[self.read..];
                if !rest.is_empty() {
                    let length = rest.len().min(buffer.len());
                    buffer[..length].copy_from_slice(&rest[..length]);
                    self.read += length;
                    return Ok(length);
                }
            }
            (self.piece, self.read) = (self.pieces.blocking_recv().transpose()?, 0);
            if self.piece.is_none() {
                return Ok(0);
            }
        }
    }
}

/// What is written on a thread, as pieces of an archive.
struct PieceWriter(mpsc::Sender<io::Result<Vec<u8>>>);

impl Write for PieceWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = self.0.blocking_send(Ok(bytes.to_vec()));
        sent.map(|()| bytes.len()).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Counts an archive, and writes it again for one who takes it. An archive that is not
/// whole must not seem so.
fn carry<B: AsRef<[u8]>>(
    from: Pieces<B>,
    owners: Owners,
    to: Option<mpsc::Sender<io::Result<Vec<u8>>>>,
) -> io::Result<Vec<Sum>> {
    let Some(to) = to else {
        return archive::count(from, owners, None::<&mut archive::Out<io::Sink>>);
    };
    let pieces = BufWriter::with_capacity(limits::COPY_PIECE_BYTES, PieceWriter(to.clone()));
    let mut out = tar::Builder::new(pieces);
    let carried = archive::count(from, owners, Some(&mut out))
        .and_then(|sums| out.into_inner()?.flush().map(|()| sums));
    if carried.is_err() {
        // Who takes it may be gone, which is why.
        let _ = to.blocking_send(Err(io::Error::other("it is not whole")));
    }
    carried
}

/// Reads the store that one maker sees, and writes it to the one that another sees. Gives
/// the digest of what was read. Two makers, because the daemon does one thing at a time with
/// a container.
pub(crate) async fn copy(
    engine: &Engine,
    (from, store): (&str, &Store),
    to: Option<(&str, &Store)>,
) -> Result<String, Error> {
    let user = engine.user(store);
    let owners = Owners { read: user, written: to.map_or(user, |(_, store)| engine.user(store)) };
    let (read, pieces) = mpsc::channel(limits::COPY_PIECES_MAX);
    let (write, written) = mpsc::channel(limits::COPY_PIECES_MAX);
    let write = to.map(|_| write);
    let carrying = tokio::task::spawn_blocking(move || {
        carry(Pieces { pieces, piece: None, read: 0 }, owners, write)
    });
    let patient = engine.patient();
    let reading = async {
        let options = DownloadFromContainerOptions { path: maker::DISK.to_owned() };
        let mut archive = std::pin::pin!(patient.download_from_container(from, Some(options)));
        while let Some(piece) = archive.next().await {
            let (piece, failure) = match piece {
                Ok(piece) => (Ok(piece), None),
                Err(failure) => (Err(io::Error::other("it can't be read")), Some(failure)),
            };
            let sent = read.send(piece).await;
            if let Some(failure) = failure {
                return Err(engine.failed("reading a disk", &failure));
            }
            if sent.is_err() {
                // Why it takes no more is said below.
                break;
            }
        }
        drop(read);
        Ok(())
    };
    let writing = async {
        let Some((to, _)) = to else { return Ok(()) };
        let pieces = stream::unfold(written, |mut written| async {
            let piece: io::Result<Vec<u8>> = written.recv().await?;
            Some((piece.map(Into::into), written))
        });
        let options =
            UploadToContainerOptions { path: maker::ABOVE.to_owned(), ..Default::default() };
        let body = bollard::body_try_stream(pieces);
        let put = engine.patient().upload_to_container(to, Some(options), body).await;
        put.map_err(|failure| engine.failed("copying a disk", &failure))
    };
    let (read, written, carried) = tokio::join!(reading, writing, carrying);
    let failed = |error: &dyn std::fmt::Display| {
        Error::Backend(format!("reading the archive of a disk: {error}"))
    };
    read?;
    match carried.map_err(|error| failed(&error))? {
        Ok(sums) => written.map(|()| archive::digest(sums)),
        // Where nobody takes it, there is a reason for that.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            Err(written.err().unwrap_or_else(|| failed(&error)))
        }
        Err(error) => Err(failed(&error)),
    }
}

fn directories<'a>(
    names: impl IntoIterator<Item = (&'a str, u32)>,
    user: u32,
) -> io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, mode) in names {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Directory);
        header.set_mode(mode);
        header.set_uid(user.into());
        header.set_gid(KEPT.into());
        header.set_size(0);
        archive.append_data(&mut header, name, io::empty())?;
    }
    archive.into_inner()
}

/// Makes the disk of a new sandbox, which is empty.
pub(crate) async fn fresh_disk(engine: &Engine, maker: &str, store: &Store) -> Result<(), Error> {
    let user = engine.user(store);
    let failed = |error| Error::Backend(format!("no empty disk: {error}"));
    let all = names::DISK.map(|(part, _, mode)| (format!("{}/{part}", maker::IN_ARCHIVE), mode));
    let all = all.iter().map(|(path, mode)| (path.as_str(), *mode));
    engine.put(maker, maker::ABOVE, directories(all, user).map_err(failed)?).await
}

/// An archive with one program.
pub(crate) fn program(name: &str, bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_mode(0o555);
    header.set_size(bytes.len() as u64);
    archive.append_data(&mut header, name, bytes)?;
    archive.into_inner()
}
