//! What Landlock refuses in a root where nothing else would, as far as the kernel has it.

use crate::harness::*;

/// `LANDLOCK_CREATE_RULESET_VERSION` of linux/landlock.h.
const ASK_VERSION: libc::c_uint = 1;

/// The version of the kernel's Landlock; 0 where it has none.
fn version() -> i64 {
    // SAFETY: with this flag the call takes no memory, and makes nothing.
    let version = unsafe {
        let none = std::ptr::null::<libc::c_void>();
        libc::syscall(libc::SYS_landlock_create_ruleset, none, 0_usize, ASK_VERSION)
    };
    version.max(0)
}

/// A request that only terminals know.
const REQUEST: &str = "python3 -c 'import fcntl, sys, termios
for path in sys.argv[1:]:
    with open(path) as device:
        try: fcntl.ioctl(device, termios.TCGETS)
        except OSError as error: print(path, error.strerror)
' /dev/null /opt/device";

#[tokio::test]
async fn what_a_root_should_not_have_is_of_no_use() {
    let guest = Guest::ready(Setup::default());
    let sandbox = guest.connect().await;
    // Version 1 would refuse to move files between directories, so it is not used.
    let serves = version() >= 2;
    let word = |refused: bool| if refused { "refused\n" } else { "done\n" };
    for (line, refused) in [
        ("mknod whiteout c 0 0", true),
        ("mknod fifo p", false),
        ("touch /sys/file", serves),
        ("mkdir /sys/dir", serves),
        ("echo > /opt/device", false),
        (
            "touch file && mkdir dir && mv file dir/ && ln dir/file linked && truncate -s 9 linked",
            false,
        ),
        ("echo renamed > /proc/self/comm", false),
    ] {
        let tried = format!("({line}) 2>/dev/null && echo done || echo refused");
        assert_eq!(says(&sandbox, &tried).await, word(refused), "{line}");
    }
    let unknown = "Inappropriate ioctl for device";
    let other = if version() >= 5 { "Permission denied" } else { unknown };
    let expected = format!("/dev/null {unknown}\n/opt/device {other}\n");
    assert_eq!(says(&sandbox, REQUEST).await, expected);
}
