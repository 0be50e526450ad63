//! Landlock: it is there where the host is told so, and no program that means well notices.

use crate::support::*;
use outrigger_sandbox::Backend;

/// Counts the domains that still fit around a process, which are 16 where it is in none: the
/// kernel tells nobody that it is in one. The numbers are those of linux/landlock.h.
const CONFINED: &str = r#"
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
make_block = ctypes.c_uint64(1 << 11)
libc.prctl(38, 1, 0, 0, 0)
own = 0
while own < 17:
    rules = libc.syscall(444, ctypes.byref(make_block), 8, 0)
    if rules < 0 or libc.syscall(446, rules, 0) < 0: break
    own += 1
print("free" if own in (0, 16) else "confined")
"#;

#[tokio::test]
async fn it_is_where_the_layers_say_so() {
    let sandbox = single().await;
    let layers = &sandbox.world.native.capabilities().layers;
    let layer = layers.iter().find(|layer| layer.name == "landlock").expect("it is told of");
    let expected = if layer.active { "confined\n" } else { "free\n" };
    let done = run(&*sandbox, argv(&["python3", "-c", CONFINED])).await;
    assert_eq!(String::from_utf8_lossy(&done.stdout), expected, "{}", layer.detail);
}

/// Leaves a process that listens on a socket without a file, and has a file open.
const SERVER: &str = r#"
import os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.bind("\0served")
server.listen()
opened = open("/workspace/opened", "w")
if os.fork() == 0:
    os.setsid()
    for stream in range(3): os.dup2(os.open("/dev/null", os.O_RDWR), stream)
    while True:
        server.accept()[0].sendall(b"served\n")
"#;

/// Finds who has that file open, as lsof(8) does, talks to it and ends it.
const CLIENT: &str = r#"
import glob, os, select, signal, socket
found = set()
for fd in glob.glob("/proc/[0-9]*/fd/*"):
    try:
        if os.readlink(fd) == "/workspace/opened":
            found.add(int(fd.split("/")[2]))
    except OSError:
        pass
client = socket.socket(socket.AF_UNIX)
client.connect("\0served")
print(client.recv(10), len(found))
server = found.pop()
print(os.readlink(f"/proc/{server}/cwd"), len(open(f"/proc/{server}/environ").read()) > 0)
end = os.pidfd_open(server)
os.kill(server, signal.SIGKILL)
select.select([end], [], [])
print("ended")
"#;

#[tokio::test]
async fn commands_see_and_signal_what_others_left() {
    let sandbox = single().await;
    let begun = run(&*sandbox, argv(&["python3", "-c", SERVER])).await;
    assert_eq!(String::from_utf8_lossy(&begun.stderr), "");
    let done = run(&*sandbox, argv(&["python3", "-c", CLIENT])).await;
    assert_eq!(String::from_utf8_lossy(&done.stderr), "");
    assert_eq!(String::from_utf8_lossy(&done.stdout), "b'served\\n' 1\n/workspace True\nended\n");
}

/// What programs do that goes by a path, or by what only looks like one.
const USES: &str = r#"
import ctypes, errno, multiprocessing, os, pty, socket, tempfile
from multiprocessing import shared_memory

# Moves and links between directories, and all that can be made.
os.makedirs("a/b"); open("a/f", "w").close()
os.rename("a/f", "a/b/f"); os.link("a/b/f", "a/g"); os.rename("a/b", "b")
os.symlink("b/f", "s"); os.mkfifo("p"); os.truncate("a/g", 5); os.replace("a/g", "b/g")
socket.socket(socket.AF_UNIX).bind("sock")
with tempfile.TemporaryFile(): pass

# What a process says of itself.
for path, text in [("oom_score_adj", "700"), ("comm", "named"), (f"task/{os.getpid()}/comm", "x")]:
    with open(f"/proc/self/{path}", "w") as file: file.write(text)

# Descriptors by their names.
memory, (reads, writes) = os.memfd_create("m"), os.pipe()
os.close(os.open(f"/proc/self/fd/{memory}", os.O_RDWR | os.O_TRUNC))
os.close(os.open(f"/dev/fd/{writes}", os.O_WRONLY))
gone = os.open("gone", os.O_RDWR | os.O_CREAT); os.unlink("gone")
os.close(os.open(f"/proc/self/fd/{gone}", os.O_RDWR))

# Devices, which are no terminals.
for device in ["null", "zero", "full", "random", "urandom"]:
    fd = os.open(f"/dev/{device}", os.O_RDWR)
    try: os.get_terminal_size(fd)
    except OSError as error: assert error.errno in (errno.ENOTTY, errno.EINVAL), (device, error)
    os.close(fd)

# Terminals of its own, and this one's.
pid, terminal = pty.fork()
if pid == 0:
    with open("/dev/tty", "w") as tty: tty.write(str(os.get_terminal_size(tty.fileno()).lines))
    os._exit(0)
assert os.read(terminal, 10) == b"0"
os.waitpid(pid, 0)

# Shared memory, semaphores, queues.
with multiprocessing.Pool(2) as pool: assert pool.map(abs, [-1, 2]) == [1, 2]
segment = shared_memory.SharedMemory(create=True, size=10); segment.close(); segment.unlink()
libc = ctypes.CDLL(None, use_errno=True)
queue = libc.mq_open(b"/q", os.O_CREAT | os.O_RDWR, 0o600, None)
assert queue >= 0 and libc.mq_unlink(b"/q") == 0, os.strerror(ctypes.get_errno())
print("fine")
"#;

#[tokio::test]
async fn programs_do_what_they_do_without_it() {
    let sandbox = single().await;
    let done = run(&*sandbox, argv(&["python3", "-c", USES])).await;
    let said = [done.stdout, done.stderr].concat();
    assert_eq!(String::from_utf8_lossy(&said), "fine\n");
    let line = "cat <(echo one); { echo two > /dev/fd/1; echo three > /dev/stdout; } | cat";
    assert_eq!(says(&*sandbox, line).await, "one\ntwo\nthree\n");
}
