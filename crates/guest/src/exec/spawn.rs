//! From a request to a process: everything that a new process needs is laid out
//! first, then it is made, and until its exec it makes system calls and nothing else.
//!
//! Owns the environment, the search for the program, and the order in which a
//! process gives up what it must not have. It may share the guest's memory until then, so
//! it may not allocate, lock or unwind: see signal-safety(7) and vfork(2).

use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_int, c_void};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use outrigger_sandbox::{Command, Error, Execute, Streams};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::confine::seccomp::CommandFilter;
use crate::exec::process_group::Group;
use crate::exec::report::Report;
use crate::exec::terminal::{self, TerminalPair};
use crate::exec::vfork::{self, Memory, Stack};
use crate::paths::{HOME, TMP, WORKSPACE};
use crate::{limits, sys};

/// The few variables that every command has.
const ENVIRONMENT: [(&str, &str); 6] = [
    ("PATH", "/usr/local/bin:/usr/bin:/bin"),
    ("WORKSPACE", WORKSPACE),
    ("HOME", HOME),
    ("USER", "agent"),
    ("LANG", "C.UTF-8"),
    ("TMPDIR", TMP),
];

/// What a terminal is taken for where the request says nothing else.
const TERM: (&str, &str) = ("TERM", "xterm-256color");

/// Steps that can fail between fork and exec, as the child reports them.
const STEP_SETUP: u8 = 1;
const STEP_CWD: u8 = 2;
const STEP_EXEC: u8 = 3;

/// What the child needs, made before it.
struct ExecPlan<'a> {
    candidates: Vec<CString>,
    argv: Vec<*const c_char>,
    envp: Vec<*const c_char>,
    cwd: Option<CString>,
    stdin: c_int,
    stdout: c_int,
    stderr: c_int,
    report: &'a Report,
    join: c_int,
    /// Whether standard input is a terminal to be taken as its own.
    terminal: bool,
    pids_max: Option<u64>,
    file_bytes_max: u64,
    filter: &'a [seccompiler::sock_filter],
    /// The user of commands.
    agent: u32,
}

/// A process that was forked, and our ends of its pipes.
#[derive(Debug)]
pub(crate) struct ChildProcess {
    pub(crate) pid: i32,
    pub(crate) streams: ParentStreams,
    /// Why its program did not run, once it ended; [`refusal`] puts it into words.
    pub(crate) report: Report,
}

/// Our ends of a command's streams.
#[derive(Debug)]
pub(crate) enum ParentStreams {
    Pipes { stdin: Option<OwnedFd>, stdout: OwnedFd, stderr: Option<OwnedFd> },
    Terminal(OwnedFd),
}

/// The command's ends. Without input there is none; merged, the last is missing too.
#[derive(Debug)]
struct ChildStreams {
    stdin: Option<OwnedFd>,
    stdout: OwnedFd,
    stderr: Option<OwnedFd>,
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(pipe_with(PipeFlags::CLOEXEC)?)
}

/// Makes the streams of a request.
fn streams(request: &Execute) -> io::Result<(ParentStreams, ChildStreams)> {
    // A pipe and a terminal are files of whoever makes them. The command opens them again,
    // by `/dev/stdout` or by the terminal's name; where that is not to be had, it can't.
    let _rights = sys::AgentRights::take();
    if let Some(size) = request.terminal {
        let TerminalPair { parent, child } = terminal::open(size)?;
        let child = ChildStreams { stdin: Some(child.try_clone()?), stdout: child, stderr: None };
        return Ok((ParentStreams::Terminal(parent), child));
    }
    let (stdout, stdout_end) = pipe()?;
    let (stderr, stderr_end) = match request.streams {
        Streams::Separate => pipe().map(|(read, write)| (Some(read), Some(write)))?,
        Streams::Merged => (None, None),
    };
    let (stdin_end, stdin) = match request.stdin.is_empty() {
        true => (None, None),
        false => pipe().map(|(read, write)| (Some(read), Some(write)))?,
    };
    for parent in [Some(&stdout), stderr.as_ref(), stdin.as_ref()].into_iter().flatten() {
        sys::set_nonblocking(parent.as_fd())?;
    }
    let child = ChildStreams { stdin: stdin_end, stdout: stdout_end, stderr: stderr_end };
    Ok((ParentStreams::Pipes { stdin, stdout, stderr }, child))
}

/// What does not change from command to command.
#[derive(Debug)]
pub(crate) struct Launcher {
    pub(crate) filter: CommandFilter,
    pub(crate) pids_max: Option<u64>,
    pub(crate) file_bytes_max: u64,
    pub(crate) null: OwnedFd,
    pub(crate) shell: &'static str,
    pub(crate) stack: Stack,
    /// Whether a new process may borrow this one's memory, which stands still meanwhile.
    pub(crate) lends: bool,
    /// Variables of the sandbox, in the place of the constructed few.
    pub(crate) env: Vec<(String, String)>,
}

/// The program as the request names it, for messages.
pub(crate) fn program(command: &Command) -> String {
    match command {
        Command::Argv(argv) => {
            let name = argv.first().map_or(&[][..], Vec::as_slice);
            let shown = &name[..name.len().min(limits::PROGRAM_BYTES_MAX)];
            String::from_utf8_lossy(shown).into_owned()
        }
        Command::Shell(_) => "sh".to_owned(),
    }
}

fn c_string(bytes: &[u8]) -> CString {
    CString::new(bytes).expect("a checked request has no NUL bytes")
}

/// As execve(2) takes them.
fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([std::ptr::null()]).collect()
}

/// Paths to try, as execvp(3) would.
fn candidates(program: &[u8], path: &str) -> Vec<CString> {
    if program.contains(&b'/') {
        return vec![c_string(program)];
    }
    let dirs = path.split(':').map(|dir| if dir.is_empty() { "." } else { dir });
    dirs.map(|dir| c_string(&[dir.as_bytes(), b"/", program].concat())).collect()
}

impl Launcher {
    /// Forks the process of a checked request into its group.
    pub(crate) fn start(
        &mut self,
        request: &Execute,
        group: &Group,
        memory: Memory,
    ) -> Result<ChildProcess, Error> {
        let failed = |error: io::Error| Error::CannotStart {
            program: program(&request.command),
            reason: format!("the sandbox has no room for another process: {error}"),
        };
        let (streams, theirs) = streams(request).map_err(failed)?;

        let mut variables: BTreeMap<&str, &str> = ENVIRONMENT.into();
        variables.extend(self.env.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        variables.extend(request.terminal.map(|_| TERM));
        variables.extend(request.env.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let argv: Vec<CString> = match &request.command {
            Command::Argv(argv) => argv.iter().map(|word| c_string(word)).collect(),
            Command::Shell(line) => {
                [self.shell.as_bytes(), b"-c", line.as_bytes()].map(c_string).into()
            }
        };
        let envp: Vec<CString> = variables
            .iter()
            .map(|(name, value)| c_string(format!("{name}={value}").as_bytes()))
            .collect();
        let path = variables.get("PATH").copied().unwrap_or("");
        let join = group.door();
        let report = Report::new().map_err(failed)?;
        let plan = ExecPlan {
            candidates: candidates(argv[0].as_bytes(), path),
            argv: pointers(&argv),
            envp: pointers(&envp),
            cwd: request.cwd.as_ref().map(|cwd| c_string(cwd.as_bytes())),
            stdin: theirs.stdin.as_ref().unwrap_or(&self.null).as_raw_fd(),
            stdout: theirs.stdout.as_raw_fd(),
            stderr: theirs.stderr.as_ref().unwrap_or(&theirs.stdout).as_raw_fd(),
            report: &report,
            join: join.as_ref().map_or(-1, AsRawFd::as_raw_fd),
            terminal: request.terminal.is_some(),
            pids_max: self.pids_max,
            file_bytes_max: self.file_bytes_max,
            filter: self.filter.program(),
            agent: sys::agent_id(),
        };
        let memory = if self.lends { memory } else { Memory::Copied };
        let (into, with) = (group.birthplace(), (&raw const plan).cast());
        // SAFETY: `become_command` makes system calls on what the plan holds, which
        // stays where it is until this returns, and writes nothing but the report.
        let pid = unsafe { vfork::make(&mut self.stack, memory, into, become_command, with) };
        // It may have been killed while that was shown.
        sys::hide_memory().map_err(failed)?;
        let pid = pid.map_err(failed)?;
        Ok(ChildProcess { pid, streams, report })
    }
}

/// What a process that could not run its program reported. `None`: it runs.
pub(crate) fn refusal(report: &Report, program: &str) -> Option<Error> {
    let (step, number) = report.said();
    if step == 0 {
        return None;
    }
    let cause = io::Error::from_raw_os_error(number);
    let reason = match (step, number) {
        (STEP_CWD, _) => format!("its working directory can't be entered: {cause}"),
        (STEP_EXEC, libc::ENOENT) => "no such program, or its interpreter is missing".to_owned(),
        (STEP_EXEC, libc::EACCES) => "it is not executable".to_owned(),
        (STEP_EXEC, libc::ENOEXEC) => {
            "it is neither a program nor a script with a #! line".to_owned()
        }
        (STEP_EXEC, libc::E2BIG) => {
            "its arguments are too long for the kernel (128 KiB each)".to_owned()
        }
        (STEP_EXEC, libc::EAGAIN) => "the process limit of the sandbox is reached".to_owned(),
        _ => format!("step {step} failed: {cause}"),
    };
    Some(Error::CannotStart { program: program.to_owned(), reason })
}

/// Runs in the child until the exec.
///
/// # Safety
/// Only in a new process that shares memory with a thread that stands still. `plan`
/// points to a [`ExecPlan`].
unsafe extern "C" fn become_command(plan: *const c_void) -> ! {
    // SAFETY: only async-signal-safe calls, on descriptors and memory that the plan
    // keeps alive; the process ends here whatever happens.
    unsafe {
        let plan = &*plan.cast::<ExecPlan<'_>>();
        if let Err(step) = give_up_privileges(plan) {
            fail(plan.report, step);
        }
        // Not at the exec, because both the working directory and the program may be answered
        // for by the guest, whose end must not wait for a copy of what it answers by.
        libc::syscall(
            libc::SYS_close_range,
            3 as libc::c_ulong,
            libc::c_ulong::from(u32::MAX),
            0 as libc::c_ulong,
        );
        let workspace = c"/workspace";
        if libc::chdir(workspace.as_ptr()) != 0 {
            fail(plan.report, STEP_CWD);
        }
        if let Some(cwd) = &plan.cwd
            && !enter(cwd)
        {
            fail(plan.report, STEP_CWD);
        }
        let mut denied = false;
        for candidate in &plan.candidates {
            libc::execve(candidate.as_ptr(), plan.argv.as_ptr(), plan.envp.as_ptr());
            match *libc::__errno_location() {
                libc::EACCES => denied = true,
                libc::ENOENT | libc::ENOTDIR => {}
                _ => fail(plan.report, STEP_EXEC),
            }
        }
        *libc::__errno_location() = if denied { libc::EACCES } else { libc::ENOENT };
        fail(plan.report, STEP_EXEC)
    }
}

/// Enters a directory, but through none of the magic links of proc(5), which could name
/// what is the guest's.
///
/// # Safety
/// As [`become_command`].
unsafe fn enter(cwd: &CString) -> bool {
    // SAFETY: as `become_command`; an all-zero open_how is a valid value, and both
    // pointers are to live values.
    unsafe {
        let mut how: libc::open_how = std::mem::zeroed();
        how.flags = (libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC) as u64;
        how.resolve = libc::RESOLVE_NO_MAGICLINKS;
        let dir = libc::syscall(
            libc::SYS_openat2,
            libc::AT_FDCWD,
            cwd.as_ptr(),
            &raw const how,
            size_of::<libc::open_how>(),
        );
        dir >= 0 && libc::fchdir(dir as c_int) == 0
    }
}

/// Goes before the guest when memory runs out. The file is a process's own only while its
/// memory may be looked at (proc(5)), and until its exec that of a command is the guest's: for
/// this moment the guest is protected by its user alone, so only where it has one of its own.
///
/// # Safety
/// As [`become_command`].
unsafe fn go_first() {
    // SAFETY: as `become_command`; pointers are to constants.
    unsafe {
        libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0);
        let score =
            libc::open(c"/proc/self/oom_score_adj".as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        if score >= 0 {
            libc::write(score, c"500".as_ptr().cast(), 3);
        }
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
    }
}

/// Takes the standard streams, its own session and group, the sandbox's user and the filter.
///
/// # Safety
/// As [`become_command`].
unsafe fn give_up_privileges(plan: &ExecPlan<'_>) -> Result<(), u8> {
    let check = |result: libc::c_long| if result < 0 { Err(STEP_SETUP) } else { Ok(()) };
    let id = plan.agent;
    // SAFETY: as `become_command`; pointers are to live locals or constants.
    unsafe {
        libc::setsid();
        if plan.join >= 0 {
            check(libc::write(plan.join, c"0".as_ptr().cast(), 1) as libc::c_long)?;
        }
        if libc::geteuid() != id {
            go_first();
        }
        for (from, to) in [(plan.stdin, 0), (plan.stdout, 1), (plan.stderr, 2)] {
            check(libc::c_long::from(libc::dup2(from, to)))?;
        }
        if plan.terminal {
            check(libc::c_long::from(libc::ioctl(0, libc::TIOCSCTTY, 0)))?;
        }
        // Nothing of the guest's own handlers may run on its memory.
        for signal in [libc::SIGPIPE, libc::SIGSEGV, libc::SIGBUS] {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        libc::umask(0o022);
        if let Some(most) = plan.pids_max {
            let processes = libc::rlimit { rlim_cur: most, rlim_max: most };
            libc::setrlimit(libc::RLIMIT_NPROC, &raw const processes);
        }
        let bytes = libc::rlimit { rlim_cur: plan.file_bytes_max, rlim_max: plan.file_bytes_max };
        libc::setrlimit(libc::RLIMIT_FSIZE, &raw const bytes);
        if libc::geteuid() != id {
            check(libc::syscall(libc::SYS_setgroups, 0, std::ptr::null::<libc::gid_t>()))?;
            check(libc::syscall(libc::SYS_setresgid, id, id, id))?;
            check(libc::syscall(libc::SYS_setresuid, id, id, id))?;
            // Where the host lets programs that change users be looked into, the change
            // made this memory, which is the guest's, open to the new one.
            libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
        }
        if !plan.filter.is_empty() {
            let program = libc::sock_fprog {
                len: plan.filter.len() as u16,
                filter: plan.filter.as_ptr().cast_mut().cast(),
            };
            let mode = libc::SECCOMP_SET_MODE_FILTER;
            check(libc::syscall(libc::SYS_seccomp, mode, 0, &raw const program))?;
        }
    }
    Ok(())
}

/// Reports the step and errno, and ends.
///
/// # Safety
/// As [`become_command`].
unsafe fn fail(report: &Report, step: u8) -> ! {
    // SAFETY: as `become_command`; nobody else looks at the report before the end.
    unsafe {
        report.say(step, *libc::__errno_location());
        libc::_exit(127)
    }
}

/// The caps of cores and open files are set once, for all.
pub(crate) fn set_limits() -> io::Result<()> {
    sys::limit(libc::RLIMIT_CORE, limits::CORE_BYTES_MAX)?;
    sys::limit(libc::RLIMIT_NOFILE, limits::OPEN_FILES_MAX)
}
