//! What the sandbox's user may do, and that it is no more.

use super::case::cases;
use super::context::{Context, Outcome, ensure, same, text};

cases! { "users":
    own_places_are_writable [Programs],
    places_of_others_are_not [Kernel],
    files_of_commands_and_operations_have_one_owner [Kernel],
    modes_are_kept_to [Kernel],
    owners_cannot_be_given_away [Kernel],
    nobody_can_be_become [Kernel],
    first_process_is_out_of_reach [Kernel],
    no_devices_are_made [Kernel],
    nothing_is_mounted [Kernel],
    name_and_home_agree [Programs],
}

async fn own_places_are_writable(context: Context) -> Outcome {
    let line = "for d in . \"$WORKSPACE\" \"$HOME\" \"$TMPDIR\"; do \
                echo x > $d/probe && cat $d/probe && rm $d/probe; done";
    context.prints("a", line, "x\nx\nx\nx\n").await
}

/// Demands that a command fails and that the sandbox goes on.
async fn fails(context: &Context, number: usize, line: &str) -> Outcome {
    let done = context.shell(&format!("f{number}"), line).await?;
    ensure(&format!("`{line}` was done: {:?}", done.end), done.exit_code() != Some(0))
}

async fn all_fail(context: &Context, lines: &[&str]) -> Outcome {
    for (number, line) in lines.iter().enumerate() {
        fails(context, number, line).await?;
    }
    context.prints("after", "echo fine", "fine\n").await
}

async fn places_of_others_are_not(context: Context) -> Outcome {
    let lines = [
        "echo x > /etc/passwd",
        "rm /etc/passwd",
        "mv /etc/passwd /etc/other",
        "chmod 777 /etc",
        "chmod 777 /",
        "mkdir /new",
        "ln -s /tmp /usr/new",
        "touch /usr/bin/true",
        "echo x > /proc/sys/kernel/hostname",
        "echo 900 > /proc/1/oom_score_adj",
    ];
    all_fail(&context, &lines).await
}

async fn files_of_commands_and_operations_have_one_owner(context: Context) -> Outcome {
    context.write("w", "by-operation", b"x").await?;
    let line = "echo x > by-command; stat -c '%u %g' by-operation by-command . | sort -u | wc -l; \
                [ $(stat -c %u by-operation) = $(id -u) ] && echo own";
    context.prints("a", line, "1\nown\n").await
}

async fn modes_are_kept_to(context: Context) -> Outcome {
    let line = "echo x > f; chmod 200 f; cat f 2> /dev/null || echo unread; \
                chmod 400 f; echo y 2> /dev/null >> f || echo unwritten; \
                printf '#!/bin/sh\\necho ran\\n' > run; ./run 2> /dev/null || echo not run; \
                chmod 700 run; ./run; mkdir d; chmod 0 d; ls d 2> /dev/null || echo closed";
    let done = context.shell("a", line).await?;
    let expected = "unread\nunwritten\nnot run\nran\nclosed\n";
    same("output", text(&done.stdout), expected.to_owned())
}

async fn owners_cannot_be_given_away(context: Context) -> Outcome {
    context.shell("make", "echo x > f").await?;
    all_fail(&context, &["chown 0 f", "chown 12345 f", "chgrp 12345 f"]).await
}

async fn nobody_can_be_become(context: Context) -> Outcome {
    // Bits that would raise a program to its owner give nothing beyond that owner.
    let line = "cp $(command -v sh) mine; chmod 6755 mine; ./mine -c 'id -u' | grep -qx $(id -u) \
                && echo the same";
    context.prints("a", line, "the same\n").await?;
    all_fail(&context, &["su -c true root < /dev/null", "sudo -n true", "chroot / true"]).await
}

async fn first_process_is_out_of_reach(context: Context) -> Outcome {
    // Refused, or without effect: a namespace keeps its first process from both.
    context.shell("signals", "kill -9 1; kill -STOP 1").await?;
    let lines = ["cat /proc/1/environ", "ls -l /proc/1/fd/", "cat /proc/1/mem"];
    all_fail(&context, &lines).await
}

async fn no_devices_are_made(context: Context) -> Outcome {
    all_fail(&context, &["mknod null c 1 3", "mknod disk b 8 0", "mknod /dev/mem c 1 1"]).await
}

async fn nothing_is_mounted(context: Context) -> Outcome {
    let lines = [
        "mount -t tmpfs none /workspace",
        "mount -t proc none /tmp",
        "mount --bind /etc /tmp",
        "umount /proc",
        "mount -o remount,rw /",
    ];
    all_fail(&context, &lines).await
}

async fn name_and_home_agree(context: Context) -> Outcome {
    let line =
        "cd && [ \"$(pwd -P)\" = \"$(cd \"$HOME\" && pwd -P)\" ] && [ -O \"$HOME\" ] && echo home";
    context.prints("a", line, "home\n").await
}
