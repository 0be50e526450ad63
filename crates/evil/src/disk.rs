//! Fills the disk, and lays out names that a careless reader would trip over.
//!
//! Owns the trees that the host then reads through file operations. Whatever it makes
//! is in the workspace and goes with it.

use std::ffi::CString;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::process::ExitCode;

use crate::bomb::fill_file;
use crate::report::Report;
use crate::sys::{call, name, nap, on_signal, outcome_of};

const HERE: usize = libc::AT_FDCWD as usize;

/// Runs the attack that is named.
pub(crate) fn run(words: &[String]) -> ExitCode {
    let kind = words.first().map_or("", String::as_str);
    let number = words.get(1).and_then(|word| word.parse().ok()).unwrap_or(u64::MAX);
    // Without it a file that is too long ends its writer.
    on_signal(libc::SIGXFSZ, libc::SIG_IGN);
    let saw = match kind {
        "fill" => fill(number),
        "churn" => churn(number),
        "sparse" => sparse(),
        "allocate" => allocate(number),
        "inodes" => inodes(number),
        "deep" => deep(number),
        "strange" => outcome_of(strange()),
        "special" => outcome_of(special()),
        "swap" => swap(words.get(2).map_or("/tmp", String::as_str), number),
        _ => return ExitCode::from(2),
    };
    Report.say(&format!("disk/{kind}"), &saw);
    ExitCode::SUCCESS
}

/// Many files, none of them large. Goes on a little after each, so that a watcher sees it.
fn fill(bytes: u64) -> String {
    let each = 8 << 20;
    for number in 0..bytes / each {
        let saw = fill_file(&format!("fill-{number}"), each);
        if saw != "never refused" {
            return saw;
        }
        nap(20);
    }
    "never refused".to_owned()
}

/// Fills it as fast as it takes, and makes room to do so again, until it is killed.
fn churn(bytes: u64) -> String {
    let each = 8 << 20;
    loop {
        for number in 0..bytes / each {
            fill_file(&format!("churn-{number}"), each);
        }
        for number in 0..bytes / each {
            let _ = fs::remove_file(format!("churn-{number}"));
        }
    }
}

fn sparse() -> String {
    let Ok(file) = File::create("sparse") else { return "cannot make it".to_owned() };
    let fd = file.as_raw_fd() as usize;
    let sizes = [("8 EiB", i64::MAX as usize), ("1 TiB", 1_usize << 40)];
    let mut saw: Vec<String> = Vec::new();
    for (size, bytes) in sizes {
        saw.push(format!(
            "{size} {}",
            crate::sys::outcome(call(libc::SYS_ftruncate, &[fd, bytes]))
        ));
    }
    saw.join(", ")
}

/// Takes room without writing, in all ways that there are: the call, then the requests.
fn allocate(bytes: u64) -> String {
    let Ok(file) = File::create("allocated") else { return "cannot make it".to_owned() };
    let (fd, bytes) = (file.as_raw_fd() as usize, bytes as usize);
    let modes = [0, libc::FALLOC_FL_KEEP_SIZE, libc::FALLOC_FL_ZERO_RANGE];
    let by_mode = modes.map(|mode| call(libc::SYS_fallocate, &[fd, mode as usize, 0, bytes]));
    // `FS_IOC_RESVSP`, `FS_IOC_RESVSP64` and `FS_IOC_ZERO_RANGE`, with their space_resv.
    let space = [0, 0, bytes, 0, 0, 0];
    let by_request = [0x4030_5828, 0x4030_582a, 0x4030_5839]
        .map(|request| call(libc::SYS_ioctl, &[fd, request, space.as_ptr() as usize]));
    let hint = [0_u32; 7];
    let hinted = call(libc::SYS_ioctl, &[fd, 0x401c_5820, hint.as_ptr() as usize]);
    let all = by_mode.into_iter().chain(by_request).chain([hinted]);
    let mut saw: Vec<String> = all.map(crate::sys::outcome).collect();
    saw.dedup();
    // What can be given back may be.
    let freed = (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE) as usize;
    if call(libc::SYS_fallocate, &[fd, freed, 0, 4096]) == Err(libc::EPERM) {
        saw.push("nothing is given back".to_owned());
    }
    saw.join(", ")
}

fn inodes(count: u64) -> String {
    for number in 0..count {
        if number % 1_000 == 0 {
            let _ = fs::create_dir(format!("many-{}", number / 1_000));
            nap(5);
        }
        // Names of 255 bytes, the most that file systems take.
        let path = format!("many-{}/{number:0>255}", number / 1_000);
        if let Err(error) = File::create(&path) {
            return format!("{} after {number}", outcome_of::<()>(Err(error)));
        }
    }
    "never refused".to_owned()
}

fn deep(levels: u64) -> String {
    let dir = c"d".as_ptr() as usize;
    let _ = std::env::set_current_dir("/workspace");
    for level in 0..levels {
        let gone = call(libc::SYS_mkdirat, &[HERE, dir, 0o755])
            .and_then(|_| call(libc::SYS_chdir, &[dir]));
        if let Err(error) = gone {
            return format!("{} at {level}", name(error));
        }
    }
    let _ = File::create("bottom");
    "done".to_owned()
}

/// Names that a shell, a terminal, a spreadsheet or a path join would take for something else.
fn strange() -> std::io::Result<()> {
    let dir = "strange";
    fs::create_dir_all(dir)?;
    let names: [&[u8]; 16] = [
        b"-rf",
        b"a\nb",
        b"CON",
        b"nul.txt",
        b"C:\\x",
        b"..\\..\\x",
        b"%2e%2e%2fx",
        b"...",
        b" ",
        b"\xff\xfe",
        b"\x1b[2J",
        b"name\xe2\x80\xaegpj.exe",
        b"caf\xc3\xa9",
        b"cafe\xcc\x81",
        b"$(touch x)",
        b"=cmd|'calc'!A0",
    ];
    for name in names {
        let path = CString::new([dir.as_bytes(), b"/", name].concat())?;
        let flags = (libc::O_CREAT | libc::O_WRONLY) as usize;
        call(libc::SYS_openat, &[HERE, path.as_ptr() as usize, flags, 0o644])
            .map_err(std::io::Error::from_raw_os_error)?;
    }
    Ok(())
}

/// What is no regular file, and links of every kind.
fn special() -> std::io::Result<()> {
    let dir = "special";
    fs::create_dir_all(dir)?;
    let fifo = CString::new(format!("{dir}/fifo"))?;
    let args = [HERE, fifo.as_ptr() as usize, (libc::S_IFIFO | 0o644) as usize, 0];
    call(libc::SYS_mknodat, &args).map_err(std::io::Error::from_raw_os_error)?;
    drop(UnixListener::bind(format!("{dir}/socket"))?);
    let links = [
        ("outside", "/etc/passwd"),
        ("outside-dir", "/etc"),
        ("up", "../../../../../etc/passwd"),
        ("dangling", "/nowhere/at/all"),
        ("loop-a", "loop-b"),
        ("loop-b", "loop-a"),
        ("zero", "/dev/zero"),
        ("descriptor", "/proc/self/fd/0"),
        ("root", "/proc/1/root"),
        ("cwd", "/proc/self/cwd"),
        ("program", "/proc/self/exe"),
    ];
    for (name, target) in links {
        symlink(target, format!("{dir}/{name}"))?;
    }
    let mut target = "end".to_owned();
    fs::write(format!("{dir}/end"), "x")?;
    for number in 0..41 {
        symlink(&target, format!("{dir}/chain-{number}"))?;
        target = format!("chain-{number}");
    }
    let file = File::create(format!("{dir}/large"))?;
    // 10 GiB of nothing.
    file.set_len(10 << 30)
}

/// Exchanges a directory and a link to another place, over and over. The host writes
/// to a file in it meanwhile.
fn swap(target: &str, milliseconds: u64) -> String {
    let _ = fs::create_dir_all("race/dir");
    let _ = symlink(target, "race/link");
    let (dir, link) = (c"race/dir", c"race/link");
    let args = [HERE, dir.as_ptr() as usize, HERE, link.as_ptr() as usize, 2];
    let end = std::time::Instant::now() + std::time::Duration::from_millis(milliseconds);
    let mut count = 0_u64;
    while std::time::Instant::now() < end {
        if let Err(error) = call(libc::SYS_renameat2, &args) {
            return name(error);
        }
        count += 1;
    }
    if count > 100 { "swapped".to_owned() } else { format!("swapped {count}") }
}
