//! Trees that are served: several who write, inside and outside.

use std::sync::Arc;
use std::time::Duration;

use super::served;
use crate::conformance::case::cases;
use crate::conformance::context::{Context, Listener, Outcome, same, shell, soon, text};
use outrigger_sandbox::{FileErrorKind, limits};

cases! { "served":
    another_writer_is_seen_by_the_next_open [Served, Programs] with served,
    another_writer_is_seen_beside_other_readers [Served, Programs] with served,
    another_writer_is_seen_by_the_next_stat [Served, Programs] with served,
    what_one_file_says_of_another_holds [Served, Programs] with served,
    an_overtaken_writer_is_told [Served, Programs] with served,
    a_replacement_of_what_nobody_saw_is_refused [Served, Programs] with served,
    what_is_added_is_never_lost [Served, Programs] with served,
    adding_goes_on_beside_others [Served, Programs] with served,
    locks_by_new_files_are_exact [Served, Programs] with served,
    each_close_is_one_change [Served, Programs] with served,
    what_may_not_be_written_is_refused [Served, Programs] with served,
}

async fn another_writer_is_seen_by_the_next_open(context: Context) -> Outcome {
    let tree = context.tree()?;
    tree.put("/memory/f", "0\n");
    for round in 1..60 {
        let text = format!("{}\n", "x".repeat(round * 7 % 50));
        if round % 40 == 0 {
            // Now and then it has been the same for a while.
            tokio::time::sleep(Duration::from_millis(150)).await;
        }
        tree.put("/memory/f", text.clone());
        context.prints(&format!("a{round}"), "cat /memory/f", &text).await?;
    }
    tree.remove("/memory/f");
    tree.put("/memory/f/now-a-folder", "in it\n");
    context.prints("b", "ls /memory/f && cat /memory/f/*", "now-a-folder\nin it\n").await?;
    tree.remove("/memory/f");
    tree.put("/memory/f", "a file again\n");
    context.prints("c", "cat /memory/f", "a file again\n").await
}

/// Of several who open a file at once, the first may not have dropped yet what was read
/// of it before.
async fn another_writer_is_seen_beside_other_readers(context: Context) -> Outcome {
    let tree = context.tree()?;
    tree.put("/memory/f", "0\n");
    let left = "for i in 1 2 3 4; do (while read x < /memory/f; do :; done) & done \
                > /dev/null 2>&1 < /dev/null; echo left";
    context.prints("a", left, "left\n").await?;
    for round in 0..200 {
        // Neither its bytes nor its length are those of before.
        let text = format!("{round}{}\n", "x".repeat(round % 7));
        if round % 40 == 0 {
            // Now and then it has been the same for a while.
            tokio::time::sleep(Duration::from_millis(150)).await;
        }
        tree.put("/memory/f", text.clone());
        context.prints(&format!("b{round}"), "cat /memory/f", &text).await?;
    }
    Ok(())
}

async fn another_writer_is_seen_by_the_next_stat(context: Context) -> Outcome {
    let tree = context.tree()?;
    tree.put("/memory/f", "");
    let line = "exec 3< /memory/f; for i in 1 2 3; do echo ready; read go; \
                stat -c %s /memory/f; done; ls /memory";
    // Each answer of the terminal is only given after the change was made.
    let request = outrigger_sandbox::Execute {
        terminal: Some(outrigger_sandbox::TerminalSize { rows: 24, columns: 80 }),
        ..shell("a", &format!("stty -echo; {line}"))
    };
    let listener = Arc::new(Listener::default());
    let id = request.id.clone();
    let (sandbox, hears) = (Arc::clone(&context.sandbox), Arc::clone(&listener));
    let run = async move { sandbox.execute(request, &*hears).await };
    let act = async {
        soon("ready", listener.hears("ready")).await?;
        for length in [3, 1, 70] {
            tree.put("/memory/f", "y".repeat(length));
            let go = outrigger_sandbox::Input::Bytes(b"go\n".to_vec());
            let given = context.sandbox.input(&id, go).await;
            given.map_err(|error| format!("input: {error}"))?;
            soon("a length", listener.hears(&format!("\n{length}\r"))).await?;
        }
        Ok::<(), String>(())
    };
    let (done, acted) = tokio::join!(run, act);
    acted?;
    let done = done.map_err(|error| error.to_string())?;
    same("how it ended", done.exit_code(), Some(0))
}

/// One file says how long another one is at least; whoever read the first sees that.
async fn what_one_file_says_of_another_holds(context: Context) -> Outcome {
    let tree = context.tree()?;
    let write = |length: usize| {
        tree.put("/memory/long", "x".repeat(length));
        tree.put("/memory/length", format!("{length}\n"));
    };
    write(1);
    let line = "for i in $(seq 300); do stat -c %s /memory/long > /dev/null; \
                read least < /memory/length; is=$(stat -c %s /memory/long); \
                [ $is -ge $least ] || echo $is after $least; done";
    let mut run = std::pin::pin!(context.sandbox.execute(shell("a", line), &()));
    let mut length = 1;
    let done = loop {
        // poll: until the command ended, which is bounded
        match tokio::time::timeout(Duration::from_millis(1), run.as_mut()).await {
            Ok(done) => break done.map_err(|error| error.to_string())?,
            Err(_) => length = (length + 1).min(limits::TREE_FILE_BYTES_MAX),
        }
        write(length);
    };
    same("what was not true", String::from_utf8_lossy(&done.stdout).as_ref(), "")?;
    same("how it ended", done.exit_code(), Some(0))
}

async fn an_overtaken_writer_is_told(context: Context) -> Outcome {
    let tree = context.tree()?;
    tree.put("/memory/f", "old\n");
    let python = "import errno\n\
        f = open('/memory/f', 'r+')\n\
        text = f.read(); f.write('mine\\n')\n\
        print('ready', flush=True)\n\
        input()\n\
        try:\n f.close(); print('lost')\n\
        except OSError as e: print(errno.errorcode[e.errno])\n\
        print(open('/memory/f').read(), end='')\n";
    let waits = "while ! test -e go; do sleep 0.01; done; echo";
    let line = format!("({waits}) | python3 -c \"{python}\"");
    let listener = Listener::default();
    let act = async {
        soon("ready", listener.hears("ready")).await?;
        tree.put("/memory/f", "theirs\n");
        context.write("w", "go", b"").await
    };
    let (done, acted) = tokio::join!(context.sandbox.execute(shell("a", &line), &listener), act);
    acted?;
    let done = done.map_err(|error| error.to_string())?;
    same("what it is told", text(&done.stdout), "ready\nESTALE\ntheirs\n".to_owned())?;
    context.kept("/memory/f", "theirs\n")
}

async fn a_replacement_of_what_nobody_saw_is_refused(context: Context) -> Outcome {
    let tree = context.tree()?;
    tree.put("/memory/f", "one\n");
    let python = "import os, errno\n\
        text = open('/memory/f').read()\n\
        open('/memory/f.tmp', 'w').write(text + 'mine\\n')\n\
        print('ready', flush=True)\n\
        input()\n\
        try: os.replace('/memory/f.tmp', '/memory/f'); print('lost')\n\
        except OSError as e: print(errno.errorcode[e.errno])\n";
    let waits = "while ! test -e go; do sleep 0.01; done; echo";
    let line = format!("({waits}) | python3 -c \"{python}\"");
    let listener = Listener::default();
    let act = async {
        soon("ready", listener.hears("ready")).await?;
        tree.put("/memory/f", "one\ntheirs\n");
        context.write("w", "go", b"").await
    };
    let (done, acted) = tokio::join!(context.sandbox.execute(shell("a", &line), &listener), act);
    acted?;
    let done = done.map_err(|error| error.to_string())?;
    same("what it is told", text(&done.stdout), "ready\nESTALE\n".to_owned())?;
    context.kept("/memory/f", "one\ntheirs\n")?;
    // Who looks again may go on.
    let again = "sed -i s/one/two/ /memory/f && cat /memory/f && \
                 cp /memory/f /memory/f.tmp && echo more >> /memory/f.tmp && \
                 mv /memory/f.tmp /memory/f && cat /memory/f";
    context.prints("b", again, "two\ntheirs\ntwo\ntheirs\nmore\n").await
}

async fn what_is_added_is_never_lost(context: Context) -> Outcome {
    let line = "for w in 1 2 3 4 5 6 7 8; do (i=0; while [ $i -lt 25 ]; do \
                echo $w.$i >> /memory/log || echo failed; i=$((i+1)); done) & done; wait; \
                sort -u /memory/log | wc -l";
    context.prints("a", line, "200\n").await
}

async fn adding_goes_on_beside_others(context: Context) -> Outcome {
    let tree = context.tree()?;
    let listener = Listener::default();
    let line = "for i in $(seq 60); do echo in.$i >> /memory/log || echo failed; echo $i; done";
    let beside = async {
        soon("a line", listener.hears("1\n")).await?;
        for number in 0..40 {
            // As another session would: by comparison.
            loop {
                let (mut contents, revision) = tree.get("/memory/log").unwrap_or_default();
                contents.extend(format!("out.{number}\n").bytes());
                let expected = outrigger_sandbox::ExpectedRevision::Revision(revision);
                let path = "/memory/log".to_owned();
                let op = outrigger_sandbox::TreeOp::Write { path, expected, contents };
                match outrigger_sandbox::Tree::perform(&*tree, op).await {
                    Ok(_) => break,
                    // The file may not have come out yet: whoever writes it goes on.
                    Err(error) if error.kind == FileErrorKind::Conflict => {
                        tokio::task::yield_now().await;
                    }
                    Err(error) => return Err(error.to_string()),
                }
            }
            tokio::task::yield_now().await;
        }
        Ok(())
    };
    let (done, beside) = tokio::join!(context.sandbox.execute(shell("a", line), &listener), beside);
    beside?;
    let done = done.map_err(|error| error.to_string())?;
    same("what failed", text(&done.stdout).contains("failed"), false)?;
    let log = tree.get("/memory/log").map(|(contents, _)| text(&contents)).unwrap_or_default();
    let mut lines: Vec<&str> = log.lines().collect();
    lines.sort_unstable();
    lines.dedup();
    same("lines", lines.len(), 100)
}

async fn locks_by_new_files_are_exact(context: Context) -> Outcome {
    let line = "echo 0 > n; for w in 1 2 3 4 5 6; do (i=0; while [ $i -lt 5 ]; do \
                if (set -C; echo $w > /memory/lock) 2> /dev/null; then \
                n=$(cat n); echo $((n+1)) > n; i=$((i+1)); rm /memory/lock; fi; done) & done; \
                wait; cat n";
    context.prints("a", line, "30\n").await?;
    context.tree()?.put("/memory/lock", "somebody else's");
    context.prints("b", "(set -C; echo x > /memory/lock) 2> /dev/null || echo held", "held\n").await
}

async fn each_close_is_one_change(context: Context) -> Outcome {
    let tree = context.tree()?;
    let before = tree.changes();
    context.prints("a", "echo x > /memory/f", "").await?;
    same("a new file", tree.changes() - before, 1)?;
    context.prints("b", "echo y > /memory/f; echo z >> /memory/f", "").await?;
    same("two more", tree.changes() - before, 3)?;
    context.prints("c", "cat /memory/f > /dev/null; ls -l /memory > /dev/null", "").await?;
    context.prints("d", "python3 -c \"open('/memory/g','w').write('x'*300000)\"", "").await?;
    same("a large one", tree.changes() - before, 4)
}

async fn what_may_not_be_written_is_refused(context: Context) -> Outcome {
    let tree = context.tree()?;
    tree.put("/memory/ro/f", "kept\n");
    tree.put("/memory/denied/f", "kept\n");
    tree.protect("/memory/ro", FileErrorKind::ReadOnly);
    tree.protect("/memory/denied", FileErrorKind::PermissionDenied);
    let python = "import os, errno\n\
        def t(act):\n \
            try: act(); print('done')\n \
            except OSError as e: print(errno.errorcode[e.errno])\n\
        for d in ['ro', 'denied']:\n \
            p = '/memory/' + d\n \
            t(lambda: open(p + '/f', 'w')); t(lambda: open(p + '/f', 'a'))\n \
            t(lambda: open(p + '/new', 'w')); t(lambda: open(p + '/new', 'x'))\n \
            t(lambda: os.remove(p + '/f')); t(lambda: os.mkdir(p + '/d'))\n \
            t(lambda: os.truncate(p + '/f', 0)); t(lambda: os.rename(p + '/f', '/memory/f'))\n \
            print(os.access(p + '/f', os.W_OK), open(p + '/f').read(), end='')\n";
    let refused = |kind: &str| format!("{}False kept\n", format!("{kind}\n").repeat(8));
    let expected = refused("EROFS") + &refused("EACCES");
    context.prints("a", &format!("python3 -c \"{python}\""), &expected).await?;
    let most = limits::TREE_NAME_BYTES_MAX;
    let line = format!("touch /memory/$(printf '%0{}d' 0) 2>&1 | grep -c 'too long'", most + 1);
    context.prints("b", &line, "1\n").await
}
