//! The programs whose arguments are understood, as data.
//!
//! A program that is not in the table is opaque, and so is one of its options that runs
//! a program, or reads from a file which files to open.

/// How a program takes its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// It opens none of them, so that they may be anything.
    Quiet,
    /// They are options, paths and plain text.
    Plain,
    /// They are options, paths and plain text, and it changes files to what the text says or
    /// names.
    Writes,
    /// They are options, paths and plain text, and it runs what the work brings along.
    Runs,
    /// Runs a script of a shell.
    Shell,
    /// Runs a script of another language.
    Script,
    /// Runs the program that its arguments name.
    Wraps,
    /// Goes into a directory.
    Enters,
    /// `test` and `[`.
    Tests,
    /// Says something of variables.
    Declares,
    /// Sets options of the shell.
    Sets,
    Git,
    Find,
    Sed,
    Awk,
}

/// One row: programs, how they take arguments, and options that make a call opaque. Long
/// options stand for their abbreviations and with a value too, short ones for
/// every cluster with them, words for themselves, and `=` for an assignment.
type Row = (&'static str, Form, &'static str);

const TABLE: &[Row] = &[
    (
        "echo true false : pwd whoami id uname sleep exit return break continue wait \
         kill seq basename dirname hostname nproc jobs which uptime arch tput clear \
         logname groups tty yes shift expr factor ps free cal printenv",
        Form::Quiet,
        "",
    ),
    ("printf", Form::Quiet, "-v"),
    ("type", Form::Quiet, ""),
    ("date", Form::Plain, "--file -f"),
    (
        "cat ls head tail uniq cut tr diff cmp comm join rmdir rm mkdir touch stat df nl \
         tac rev od xxd hexdump strings base64 base32 realpath readlink paste column \
         fold fmt expand unexpand shuf gzip gunzip zcat bzip2 bunzip2 xz unxz zstd \
         numfmt pgrep lsof mktemp egrep fgrep grep jq cksum sum chmod chown tsort pr ptx \
         zipinfo",
        Form::Plain,
        "",
    ),
    ("md5sum sha1sum sha256sum sha512sum b2sum", Form::Plain, "--check -c"),
    ("wc du", Form::Plain, "--files0-from"),
    ("sort", Form::Plain, "--files0-from --compress-program"),
    ("file", Form::Plain, "--files-from -f -m --magic-file"),
    ("tree", Form::Plain, "--fromfile --fromtabfile"),
    ("rg", Form::Plain, "--pre --hostname-bin --search-zip -z --config"),
    ("fd", Form::Plain, "--exec --exec-batch -x -X"),
    ("cp mv ln install dd truncate split csplit tee", Form::Writes, "--strip-program --filter"),
    ("patch unzip", Form::Writes, "--get -g"),
    ("zip", Form::Writes, "-T -TT --test --unzip-command -@ --names-stdin"),
    (
        "tar",
        Form::Writes,
        "--checkpoint-action --to-command --use-compress-program -I -F --info-script \
         --new-volume-script --rsh-command --rmt-command -T --files-from -P \
         --absolute-names -V",
    ),
    ("curl", Form::Writes, "-K --config --variable --expand-url --netrc-file --proto-default"),
    ("wget", Form::Writes, "-i --input-file -e --execute --use-askpass --config"),
    (
        "cargo rustup rustfmt tsc eslint prettier jest vitest",
        Form::Runs,
        "--config -c --rulesdir --plugin",
    ),
    (
        "make cmake ninja just rake",
        Form::Runs,
        "-f --file --makefile --eval -E -P -D -c --command --shell -e -r =",
    ),
    (
        "npm pnpm yarn bundle composer",
        Form::Runs,
        "exec x dlx config set explore edit node --script-shell --node-options --prefix \
         --call -c --shell -r",
    ),
    ("go gofmt", Form::Runs, "env tool vet -toolexec -exec -vettool -overlay -modfile -C -r"),
    (
        "pytest mypy ruff black flake8 tox",
        Form::Runs,
        "-c --config --config-file -p --rootdir -o --override-ini --override",
    ),
    ("pip pip3 uv poetry", Form::Runs, "run tool config --config-settings --python -C"),
    ("gcc cc g++ clang", Form::Runs, "-wrapper -specs -fplugin --specs -B -X"),
    ("mvn gradle javac dotnet", Form::Runs, "-D -J -I --init-script -P -f exec"),
    ("sh bash dash zsh ksh", Form::Shell, ""),
    ("python python3 node ruby perl php lua", Form::Script, ""),
    ("env nohup nice timeout command builtin exec setsid stdbuf sudo time", Form::Wraps, ""),
    ("cd pushd popd", Form::Enters, ""),
    ("test [", Form::Tests, ""),
    ("export readonly local declare typeset unset read", Form::Declares, ""),
    ("set", Form::Sets, ""),
    ("git", Form::Git, ""),
    ("find", Form::Find, ""),
    ("sed", Form::Sed, ""),
    ("awk gawk mawk", Form::Awk, ""),
];

/// Whether a name stands in a list with blanks between.
pub(crate) fn has(list: &str, name: &str) -> bool {
    list.split(' ').any(|one| one == name)
}

/// How a program takes its arguments, if it is known, and its opaque options.
pub(crate) fn form(name: &str) -> Option<(Form, &'static str)> {
    TABLE.iter().find(|(names, _, _)| has(names, name)).map(|(_, form, never)| (*form, *never))
}

/// Whether an argument is one of these options, in any spelling.
pub(crate) fn is_option(argument: &str, options: &str) -> bool {
    let name = argument.split('=').next().unwrap_or_default();
    options.split_whitespace().any(|option| {
        if option == "=" {
            !argument.starts_with('-') && argument.contains('=')
        } else if !option.starts_with('-') {
            argument == option
        } else if option.starts_with("--") {
            name == option || (name.len() > 2 && option.starts_with(name))
        } else if option.len() == 2 {
            argument.starts_with('-')
                && !argument.starts_with("--")
                && argument[1..].contains(&option[1..])
        } else {
            name.starts_with(option)
        }
    })
}

/// Parts of git that take their arguments as options, revisions and paths.
pub(crate) const GIT_PLAIN: &str = "status log diff show add branch tag blame ls-files ls-tree rev-parse rev-list \
    describe shortlog reflog restore reset rm mv grep init stash cat-file merge-base \
    name-rev show-ref for-each-ref whatchanged count-objects diff-tree cherry version";
/// Parts that run hooks or fetch.
pub(crate) const GIT_RUNS: &str = "commit checkout switch merge pull push fetch clone rebase cherry-pick revert am \
    worktree";
/// Options of git that run a program, read arguments from a file, or are no known ones.
pub(crate) const GIT_NEVER: &str = "-c --config-env --exec-path --exec -x --open-files-in-pager -O --upload-pack \
    --receive-pack --ext-diff --textconv --pathspec-from-file --template --config \
    --upload-archive -F --file --editor --strategy -X --contents --output \
    --separate-git-dir --batch --batch-check --batch-command --stdin --trailer \
    --ignore-revs-file --git-dir --work-tree --edit-description --exclude-from \
    --no-index --filters --super-prefix --namespace --gpg-sign -S -u";

/// What `find` must not be asked for.
pub(crate) const FIND_NEVER: &str = "-exec -ok -files0-from -fprint -fls -L -follow -H";

/// Modules of Python that do what their arguments say.
pub(crate) const MODULES: &str = "pytest unittest venv pip json.tool mypy black ruff flake8 build";

/// Variables that change what programs are or do.
pub(crate) fn is_fateful(name: &str) -> bool {
    const NAMES: &str = "PATH HOME CDPATH ENV IFS PS0 PS1 PS2 PS3 PS4 PWD OLDPWD PROMPT_COMMAND SHELLOPTS \
        GLOBIGNORE FIGNORE PAGER MANPAGER EDITOR VISUAL BROWSER SHELL MAKEFLAGS \
        MAKEFILES GNUMAKEFLAGS CC CXX LD AR CFLAGS CXXFLAGS LDFLAGS RUSTC RUSTFLAGS \
        RUSTDOC TAPE POSIXLY_CORRECT TMPDIR TERMINFO TERMCAP INPUTRC HISTFILE HOSTFILE \
        EXECIGNORE AWKPATH AWKLIBPATH GREP_OPTIONS TAR_OPTIONS RSYNC_RSH CVS_RSH FPATH \
        ZDOTDIR FCEDIT FUNCNEST COMP_WORDBREAKS TIMEFORMAT LOCPATH NLSPATH GCONV_PATH \
        RUBYOPT RUBYLIB UNZIP ZIPOPT GZIP XZ_OPT SUDO_ASKPASS CURL_HOME WGETRC RANDOM \
        SECONDS OPTIND REPLY";
    const FRONTS: &str = "BASH LD_ GIT_ PYTHON NODE_OPTIONS NODE_PATH PERL CARGO RUSTC_ RUSTUP NPM_ npm_ \
        LESS DYLD_ JAVA_ _JAVA JDK_ MAVEN_ GRADLE_ GO PHP LUA_ RIPGREP FZF DOCKER_ KUBE \
        SSH_ GCC_ PIP_ UV_ XDG_ LC_ LANG MAN FD_ JQ_ TF_ HELM_ GH_";
    has(NAMES, name) || FRONTS.split(' ').any(|front| name.starts_with(front))
}
