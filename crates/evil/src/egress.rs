//! The way out as a program inside uses it, and the search for what must not be inside.
//!
//! Owns three modes: `wire` gives whoever has this program's terminal one connection to the
//! way out, byte for byte; `slow` begins many requests and ends none; `hunt` looks for a word
//! that it is told backwards, so that it never holds the word itself.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::report::Report;
use crate::{limits, sys};

/// What `wire` says once it is connected.
const READY: u8 = 6;

pub(crate) fn run(words: &[String]) -> ExitCode {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["wire", port] => wire(port),
        ["slow", port, count] => slow(port, count),
        ["hunt", word] => {
            hunt(word.as_bytes());
            Ok(())
        }
        _ => return ExitCode::from(2),
    };
    if done.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn connect(port: &str) -> std::io::Result<TcpStream> {
    TcpStream::connect(("127.0.0.1", port.parse().unwrap_or_default()))
}

fn pass(mut from: impl Read, mut to: impl Write) {
    let mut space = [0; 16 << 10];
    while let Ok(length @ 1..) = from.read(&mut space) {
        if to.write_all(&space[..length]).is_err() {
            return;
        }
    }
}

fn wire(port: &str) -> std::io::Result<()> {
    sys::raw_terminal();
    let socket = connect(port)?;
    let (typed, mut shown) = (
        File::from(std::io::stdin().as_fd().try_clone_to_owned()?),
        File::from(std::io::stdout().as_fd().try_clone_to_owned()?),
    );
    shown.write_all(&[READY])?;
    let up = socket.try_clone()?;
    std::thread::spawn(move || pass(typed, up));
    pass(socket, shown);
    Ok(())
}

/// Half a head on each of many connections. Says how many of them were closed.
fn slow(port: &str, count: &str) -> std::io::Result<()> {
    let mut open = Vec::new();
    for _ in 0..count.parse().unwrap_or(0_u32) {
        let mut socket = connect(port)?;
        socket.write_all(b"GET http://good.test/ HTTP/1.1\r\nHost: go")?;
        socket.set_nonblocking(true)?;
        open.push(socket);
    }
    let (all, begun) = (open.len(), Instant::now());
    while !open.is_empty() && begun.elapsed() < Duration::from_secs(limits::SLOW_SECONDS_MAX) {
        sys::nap(100);
        // Nothing to read is an error of its own kind; all else is an end, or soon will be.
        open.retain_mut(|socket| match socket.read(&mut [0; 512]) {
            Ok(length) => length > 0,
            Err(error) => error.kind() == std::io::ErrorKind::WouldBlock,
        });
    }
    Report.say("slow", &format!("{} of {all} closed", all - open.len()));
    Ok(())
}

/// Whether it is somewhere in there. `backwards`: its last byte first.
fn has(bytes: &[u8], backwards: &[u8]) -> bool {
    let Some(last) = backwards.last() else { return false };
    let is_it = |window: &[u8]| window[0] == *last && window.iter().rev().eq(backwards);
    bytes.windows(backwards.len()).any(is_it)
}

fn hunt(backwards: &[u8]) {
    let mut files = 0;
    let mut left: Vec<PathBuf> =
        ["/workspace", "/home", "/tmp", "/dev/shm", "/run", "/var", "/etc"]
            .map(PathBuf::from)
            .into();
    let mut looked = 0;
    while let Some(path) = left.pop() {
        let Ok(kind) = path.symlink_metadata() else { continue };
        if kind.is_dir() {
            left.extend(
                std::fs::read_dir(&path).into_iter().flatten().flatten().map(|it| it.path()),
            );
        } else if kind.is_file() && looked < limits::FILES_MAX {
            looked += 1;
            files += u32::from(has(&start(&path), backwards));
        }
    }
    let said = |count: u32| if count == 0 { "nothing" } else { "found" };
    Report.say("hunt/files", said(files));
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten().map(|it| it.path());
    let own = PathBuf::from(format!("/proc/{}", std::process::id()));
    let (mut environments, mut memory) = (0, 0);
    for process in processes {
        environments += u32::from(has(&start(&process.join("environ")), backwards));
        // Its own command line would hold it if it were not told backwards.
        environments += u32::from(has(&start(&process.join("cmdline")), backwards));
        if process != own {
            memory += u32::from(in_memory(&process, backwards));
        }
    }
    Report.say("hunt/environments", said(environments));
    Report.say("hunt/memory", said(memory));
}

fn start(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let Ok(file) = File::open(path) else { return bytes };
    // What can't be read is not here for us.
    let _ = file.take(limits::FILE_BYTES_MAX).read_to_end(&mut bytes);
    bytes
}

fn in_memory(process: &Path, backwards: &[u8]) -> bool {
    let Ok(mut memory) = File::open(process.join("mem")) else { return false };
    let maps = std::fs::read_to_string(process.join("maps")).unwrap_or_default();
    maps.lines().any(|line| {
        let range = line.split([' ', '-']).take(2).map(|it| u64::from_str_radix(it, 16));
        let Ok(range) = range.collect::<Result<Vec<u64>, _>>() else { return false };
        let (&[from, to], true) = (range.as_slice(), line.contains(" rw")) else { return false };
        let mut bytes = Vec::new();
        let length = (to - from).min(limits::MAPPING_BYTES_MAX);
        memory.seek(SeekFrom::Start(from)).is_ok()
            && (&memory).take(length).read_to_end(&mut bytes).is_ok()
            && has(&bytes, backwards)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_found_by_what_it_is_backwards() {
        assert!(has(b"a secret b", b"terces"));
        assert!(has(b"secret", b"terces"));
        assert!(!has(b"a terces b", b"terces"));
        assert!(!has(b"secre", b"terces"));
    }
}
