//! What is run in a sandbox to begin a program, to speak to it and to end it: short commands of
//! a POSIX shell, so that it needs nothing of a backend that commands do not need.
//!
//! Owns that a program is what a command left behind, and no command that runs: so its sandbox
//! can be frozen and go cold between calls. All that belongs to it lies in one directory, which
//! every script has as `$0`.

/// Begins the program, whose words follow the file for its standard error. One that was begun
/// there before is ended first: by whom, nobody may know any more. In another life of the
/// sandbox its numbers may be those of somebody else, so its time has to be right, too. Its
/// pipes stay open on its own side, so that whoever comes and goes on ours does not end them.
/// Once it is over, whoever reads from it is let go, and may look how it ended.
///
/// Prints whether there was one before (`first` or `again`), and by what this one is known: its
/// process group, the process that waits for it, and when that began (proc(5), `stat`).
pub(super) const BEGIN: &str = r#"
nth() { shift "$1"; echo "$1"; }
said=$1 before=first is=; shift
if [ -e "$0" ]; then
  before=again
  read -r group waits began < "$0/id" && read -r stat < "/proc/$waits/stat" && is=$(nth 22 $stat)
  case $group in ''|*[!0-9]*|0|1) is= ;; esac
  [ -n "$is" ] && [ "$is" = "$began" ] && kill -s KILL -- "-$group"
  rm -rf "$0"
fi 2>/dev/null
umask 077
mkdir "$0" && mkfifo "$0/in" "$0/out" || exit 126
{
  "$@" 0<>"$0/in" 1<>"$0/out" 2>"$said"
  echo $? > "$0/status"
  while [ -p "$0/out" ]; do : > "$0/out"; sleep 0.05; done
} </dev/null >/dev/null 2>&1 &
waits=$!
read -r stat < "/proc/$waits/stat" || exit 126
began=$(nth 22 $stat)
echo "$$ $waits $began" > "$0/id"
echo "$before $$ $waits $began"
"#;

/// Whether the program that is known by the arguments still runs: the same one, in the same life
/// of the sandbox.
pub(super) const LOOK: &str = r#"
[ ! -e "$0/status" ] && [ "$(cat "$0/id")" = "$1 $2 $3" ] || exit 3
read -r stat < "/proc/$2/stat" || exit 3
began=$3; set -- $stat; shift 21
[ "$1" = "$began" ] || exit 3
"#;

/// Passes on what the program says, until it is killed or the program is over. Says on standard
/// error when it holds the pipe: what a program wrote that ended before is gone with it.
pub(super) const READ: &str = r#"exec < "$0/out"; printf . >&2; exec cat"#;

/// Gives the program what stands on standard input.
pub(super) const WRITE: &str = r#"exec cat > "$0/in""#;

/// How it ended, in a line; then the end of what it complained of. Its end is heard a moment
/// before it is written down.
pub(super) const STATUS: &str = r#"
left=6
while [ ! -e "$0/status" ] && [ "$((left -= 1))" -gt 0 ]; do sleep 0.05; done
cat "$0/status" && tail -c 4096 "$0/said"
"#;

/// Ends the program's process group, its first argument.
pub(super) const END: &str = r#"kill -s KILL -- "-$1""#;

/// The name of what the program writes to its standard error, where somebody reads it.
pub(super) const SAID: &str = "said";
