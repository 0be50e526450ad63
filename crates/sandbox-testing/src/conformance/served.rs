//! Trees that are served: what programs do with files works as on a disk.

pub(super) mod faults;
pub(super) mod writers;

use std::sync::Arc;

use super::case::cases;
use super::context::{Context, Outcome, same, text};
use crate::FakeTree;
use outrigger_sandbox::CreateSpec;

cases! { "served":
    read_as_files [Served, Programs] with served,
    nothing_else_is_there [Served, Programs] with served,
    long_folders_are_listed_whole [Served, Programs] with served,
    written_as_files [Served, Programs] with served,
    lengths_are_set [Served, Programs] with served,
    made_moved_and_removed [Served, Programs] with served,
    edited_in_place [Served, Programs] with served,
    replaced_by_a_temporary_file [Served, Programs] with served,
    reached_by_links [Served, Programs] with served,
    mapped_to_memory [Served, Programs] with served,
    open_files_outlive_their_names [Served, Programs] with served,
    programs_start_from_it [Served, Programs] with served,
    a_directory_to_work_in [Served, Programs] with served,
    large_files_are_whole [Served, Programs] with served,
    a_repository_lives_in_it [Served, Programs] with served,
    what_ends_with_its_command_is_outside [Served, Programs] with served,
}

/// With the folders of the suite.
pub(super) fn served(spec: CreateSpec) -> CreateSpec {
    CreateSpec { served: vec!["/memory".to_owned(), "/skills".to_owned()], ..spec }
}

impl Context {
    /// What is served into this sandbox.
    pub(super) fn tree(&self) -> Result<Arc<FakeTree>, String> {
        let trees = self.trees.as_ref().ok_or("no trees are served")?;
        Ok(trees.tree(self.sandbox.id()))
    }

    /// Demands what the tree holds at a path.
    pub(super) fn kept(&self, path: &str, expected: &str) -> Outcome {
        let kept = self.tree()?.get(path).map(|(contents, _)| text(&contents));
        same(path, kept, Some(expected.to_owned()))
    }

    /// Runs lines that must each print this.
    pub(super) async fn print(&self, table: &[(&str, &str)]) -> Outcome {
        for (number, (line, expected)) in table.iter().enumerate() {
            self.prints(&format!("line-{number}"), line, expected).await?;
        }
        Ok(())
    }
}

async fn read_as_files(context: Context) -> Outcome {
    let tree = context.tree()?;
    tree.put("/memory/a/one", "first\nsecond\n");
    tree.put("/memory/a/empty", "");
    tree.put("/memory/a b/\u{e4}", "umlaut\n");
    tree.put("/skills/s/SKILL.md", "name: s\n");
    let table = [
        ("cat /memory/a/one", "first\nsecond\n"),
        ("cat /memory/a/one /skills/s/SKILL.md", "first\nsecond\nname: s\n"),
        ("wc -c < /memory/a/empty", "0\n"),
        ("cat \"/memory/a b/\u{e4}\"", "umlaut\n"),
        ("tail -n 1 /memory/a/one; head -c 3 /memory/a/one", "second\nfir"),
        ("stat -c '%F %s %a' /memory/a/one /memory/a", "regular file 13 644\ndirectory 0 755\n"),
        ("grep -rl second /memory /skills", "/memory/a/one\n"),
        ("find /memory -type f | sort", "/memory/a b/\u{e4}\n/memory/a/empty\n/memory/a/one\n"),
        ("cd /memory/a && cat ../a/./one | wc -l", "2\n"),
        ("test -r /memory/a/one && test -w /memory/a/one && ! test -x /memory/a/one", ""),
        ("cp -r /memory/a here && cat here/one && diff -r /memory/a here", "first\nsecond\n"),
        ("tar -C /memory -cf - a | tar -tf - | sort", "a/\na/empty\na/one\n"),
    ];
    context.print(&table).await
}

async fn nothing_else_is_there(context: Context) -> Outcome {
    let tree = context.tree()?;
    tree.put("/memory/seen", "x");
    tree.put("/memory/secret/entry", "hidden");
    tree.hide("/memory/secret");
    let table = [
        ("ls -A /memory", "seen\n"),
        ("cat /memory/secret/entry 2>&1 | grep -c 'No such file'", "1\n"),
        ("cat /memory/never 2>&1 | grep -c 'No such file'", "1\n"),
        ("ls /memory/secret 2>&1 | grep -c 'No such file'", "1\n"),
    ];
    context.print(&table).await?;
    tree.put("/memory/later", "here now\n");
    context.prints("b", "cat /memory/later; ls /memory", "here now\nlater\nseen\n").await?;
    tree.remove("/memory/later");
    context.prints("c", "cat /memory/later 2>/dev/null || ls /memory", "seen\n").await
}

async fn long_folders_are_listed_whole(context: Context) -> Outcome {
    let tree = context.tree()?;
    for number in 0..2_500 {
        tree.put(&format!("/memory/many/entry-{number:04}"), "x");
    }
    let table = [
        ("ls /memory/many | wc -l", "2500\n"),
        ("ls -l /memory/many | tail -n 1 | awk '{print $NF, $5}'", "entry-2499 1\n"),
        ("ls -U /memory/many | sort -u | wc -l", "2500\n"),
        ("cat /memory/many/* | wc -c", "2500\n"),
        ("rm /memory/many/entry-1* && ls /memory/many | wc -l", "1500\n"),
        ("rm -r /memory/many && ls /memory | wc -l", "0\n"),
    ];
    context.print(&table).await
}

async fn written_as_files(context: Context) -> Outcome {
    let table = [
        ("echo one > /memory/a && cat /memory/a", "one\n"),
        ("echo two >> /memory/a && cat /memory/a", "one\ntwo\n"),
        ("echo three > /memory/a && cat /memory/a", "three\n"),
        ("touch /memory/empty && stat -c %s /memory/empty", "0\n"),
        (": > /memory/a && wc -c < /memory/a", "0\n"),
        ("printf 0123456789 | dd of=/memory/d bs=3 2> /dev/null && cat /memory/d", "0123456789"),
        (
            "printf XY | dd of=/memory/d bs=1 seek=4 conv=notrunc 2> /dev/null; cat /memory/d",
            "0123XY6789",
        ),
        ("(set -C; echo x > /memory/d) 2> /dev/null || echo there", "there\n"),
        ("cp /memory/d /memory/copy && cmp /memory/d /memory/copy && echo same", "same\n"),
        ("chmod 600 /memory/d && touch -d 2001-01-01 /memory/d && echo fine", "fine\n"),
        ("exec 3<>/memory/rw; echo hello >&3; exec 3>&-; cat /memory/rw", "hello\n"),
        ("mkdir -p /memory/x/y/z && echo deep > /memory/x/y/z/f && cat /memory/x/y/z/f", "deep\n"),
    ];
    context.print(&table).await?;
    context.kept("/memory/a", "")?;
    context.kept("/memory/empty", "")?;
    context.kept("/memory/d", "0123XY6789")?;
    context.kept("/memory/rw", "hello\n")?;
    context.kept("/memory/x/y/z/f", "deep\n")
}

async fn lengths_are_set(context: Context) -> Outcome {
    context.tree()?.put("/memory/f", "0123456789");
    let table = [
        ("truncate -s 4 /memory/f && cat /memory/f", "0123"),
        ("truncate -s 6 /memory/f && od -An -c /memory/f | tr -d ' '", "0123\\0\\0\n"),
        ("truncate -s 0 /memory/f && stat -c %s /memory/f", "0\n"),
        ("truncate -s 3 /memory/new && stat -c %s /memory/new", "3\n"),
    ];
    context.print(&table).await?;
    context.kept("/memory/f", "")?;
    context.kept("/memory/new", "\0\0\0")
}

async fn made_moved_and_removed(context: Context) -> Outcome {
    context.tree()?.put("/memory/a/f", "file\n");
    let table = [
        ("mkdir /memory/b && mv /memory/a/f /memory/b/g && cat /memory/b/g", "file\n"),
        ("mv /memory/b /memory/c && cat /memory/c/g", "file\n"),
        ("rmdir /memory/c 2> /dev/null || echo full", "full\n"),
        ("rmdir /memory/a && rm /memory/c/g && rmdir /memory/c && ls -A /memory", ""),
        ("mkdir /memory/d && mkdir /memory/d 2> /dev/null || echo there", "there\n"),
        ("ln -s x /memory/l 2>/dev/null || echo no link", "no link\n"),
        ("echo x > /memory/x; ln /memory/x /memory/y 2>/dev/null || echo no link", "no link\n"),
        ("mkfifo /memory/p 2>/dev/null || echo no pipe", "no pipe\n"),
        ("mv /memory/x here && cat here && mv here /skills/back && cat /skills/back", "x\nx\n"),
        ("mv /skills/back /memory/front && cat /memory/front", "x\n"),
        ("echo 1 > /memory/1; echo 2 > /memory/2; mv -n /memory/1 /memory/2; cat /memory/2", "2\n"),
        ("mv /memory/1 /memory/2; cat /memory/2; ls /memory", "1\n2\nd\nfront\n"),
    ];
    context.print(&table).await
}

async fn edited_in_place(context: Context) -> Outcome {
    let tree = context.tree()?;
    tree.put("/memory/notes/f", "one two\n");
    context.prints("a", "sed -i s/two/three/ /memory/notes/f", "").await?;
    context.kept("/memory/notes/f", "one three\n")?;
    context
        .prints("b", "cd /memory/notes && sed -i s/one/1/ f && cat f && ls", "1 three\nf\n")
        .await?;
    context
        .prints("c", "perl -pi -e 's/three/3/' /memory/notes/f && cat /memory/notes/f", "1 3\n")
        .await?;
    same("nothing is left", tree.paths(), vec!["/memory/notes".into(), "/memory/notes/f".into()])
}

async fn replaced_by_a_temporary_file(context: Context) -> Outcome {
    let tree = context.tree()?;
    tree.put("/memory/f", "old\n");
    let line = "cd /memory && for i in 1 2 3; do { cat f; echo $i; } > .f.tmp && mv .f.tmp f; done && cat f";
    context.prints("a", line, "old\n1\n2\n3\n").await?;
    let python = "import os\n\
        text = open('/memory/f').read()\n\
        with open('/memory/f.new', 'w') as f:\n \
            f.write(text.upper() + 'py\\n'); f.flush(); os.fsync(f.fileno())\n\
        os.replace('/memory/f.new', '/memory/f')\n\
        print(open('/memory/f').read(), end='')\n";
    context.prints("b", &format!("python3 -c \"{python}\""), "OLD\n1\n2\n3\npy\n").await?;
    context.kept("/memory/f", "OLD\n1\n2\n3\npy\n")?;
    same("nothing is left", tree.paths(), vec!["/memory/f".to_owned()])
}

async fn reached_by_links(context: Context) -> Outcome {
    context.tree()?.put("/memory/a/f", "here\n");
    let table = [
        ("ln -s /memory/a here && cat here/f && ls here", "here\nf\n"),
        (
            "ln -s /memory/a/f file && cat file && echo more >> file && cat /memory/a/f",
            "here\nhere\nmore\n",
        ),
        ("ln -s ../memory /tmp/up && cat /tmp/up/a/f | head -n 1", "here\n"),
        ("readlink -f here/f", "/memory/a/f\n"),
    ];
    context.print(&table).await?;
    context.kept("/memory/a/f", "here\nmore\n")
}

async fn mapped_to_memory(context: Context) -> Outcome {
    let tree = context.tree()?;
    tree.put("/memory/f", "mapped".repeat(2_000));
    let python = "import mmap\n\
        with open('/memory/f', 'rb') as f:\n \
            m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ, flags=mmap.MAP_PRIVATE)\n \
            print(len(m), m[:6], m[-6:])\n\
        with open('/memory/f', 'r+b') as f:\n \
            m = mmap.mmap(f.fileno(), 0)\n \
            m[:6] = b'MAPPED'; m.flush(); m.close()\n";
    let expected = "12000 b'mapped' b'mapped'\n";
    context.prints("a", &format!("python3 -c \"{python}\""), expected).await?;
    context.prints("b", "head -c 8 /memory/f", "MAPPEDma").await?;
    let kept = tree.get("/memory/f").map(|(contents, _)| text(&contents[..8]));
    same("what was mapped and written", kept, Some("MAPPEDma".to_owned()))
}

async fn open_files_outlive_their_names(context: Context) -> Outcome {
    context.tree()?.put("/memory/f", "kept\n");
    let table = [
        ("exec 3< /memory/f; rm /memory/f; cat <&3; ls /memory", "kept\n"),
        ("exec 3> /memory/g; rm /memory/g; echo x >&3; exec 3>&-; ls -A /memory", ""),
        (
            "echo 1 > /memory/a; exec 3< /memory/a; echo 2 > /memory/b; mv /memory/b /memory/a; \
          cat <&3; cat /memory/a",
            "1\n2\n",
        ),
    ];
    context.print(&table).await
}

async fn programs_start_from_it(context: Context) -> Outcome {
    let tree = context.tree()?;
    tree.put("/skills/s/run.sh", "#!/bin/sh\necho ran \"$@\"\n");
    tree.make_executable("/skills/s/run.sh");
    tree.put("/skills/s/plain.sh", "echo plain\n");
    let table = [
        ("/skills/s/run.sh a b", "ran a b\n"),
        ("sh /skills/s/plain.sh", "plain\n"),
        ("/skills/s/plain.sh 2> /dev/null || echo refused", "refused\n"),
        ("cd /skills/s && ./run.sh", "ran\n"),
    ];
    context.print(&table).await?;
    let done = context.run(super::context::argv("direct", &["/skills/s/run.sh", "x"])).await?;
    same("run as the command itself", text(&done.stdout), "ran x\n".to_owned())
}

async fn a_directory_to_work_in(context: Context) -> Outcome {
    context.tree()?.put("/memory/a/f", "x\n");
    for name in ["one", "two"] {
        let mut request = super::context::shell(name, "pwd; cat f");
        request.cwd = Some("/memory/a".to_owned());
        let done = context.run(request).await?;
        same("in it", text(&done.stdout), "/memory/a\nx\n".to_owned())?;
    }
    Ok(())
}

async fn large_files_are_whole(context: Context) -> Outcome {
    let tree = context.tree()?;
    let most = outrigger_sandbox::limits::TREE_FILE_BYTES_MAX;
    let contents: Vec<u8> = (0..most).map(|at| (at % 251) as u8).collect();
    tree.put("/memory/large", contents.clone());
    let line = "cp /memory/large here && cp here /memory/again && cmp here /memory/again && \
                stat -c %s here";
    context.prints("a", line, &format!("{most}\n")).await?;
    let again = tree.get("/memory/again").map(|(kept, _)| kept == contents);
    same("what was copied", again, Some(true))?;
    let refused = "cat here here > /memory/more 2>&1 | cat; printf x >> /memory/large \
                   2> why || grep -c 'File too large' why";
    context.prints("b", refused, "1\n").await?;
    context.prints("c", "truncate -s 2M /memory/large 2>&1 | grep -c 'File too large'", "1\n").await
}

async fn a_repository_lives_in_it(context: Context) -> Outcome {
    context.tree()?.put("/memory/repo/f", "x\n");
    let line = "cd /memory/repo && export HOME=/tmp && git init -q 2> /dev/null && \
        git config user.email a@b && git config user.name a && git add f && \
        git commit -q -m first && echo y >> f && git status --short && git commit -qam second && \
        git log --oneline | wc -l && git fsck 2>&1 | grep -vc dangling; git diff --stat";
    context.prints("a", line, " M f\n2\n0\n").await
}

async fn what_ends_with_its_command_is_outside(context: Context) -> Outcome {
    for round in 0..40 {
        let path = format!("/memory/{round}");
        context.prints(&format!("a{round}"), &format!("touch {path}"), "").await?;
        context.kept(&path, "")?;
        let line = format!("echo {round} >> {path}; : > {path}.cut");
        context.prints(&format!("b{round}"), &line, "").await?;
        context.kept(&path, &format!("{round}\n"))?;
        context.kept(&format!("{path}.cut"), "")?;
    }
    Ok(())
}
