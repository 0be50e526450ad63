"""A world of its own for a server: directories, an environment with nothing of the user's, a
script for the model, rules and people. Nothing of it lies below /tmp, which every sandbox has of
its own."""

import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

BEGIN_S_MAX = 30
END_S_MAX = 10
ANSWER_S_MAX = 40

# Tools elsewhere are shown to sandboxes, and differ from machine to machine.
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

RULES = """@id("changes-ask")
@approvable("anyone")
forbid (principal, action == Action::"write_files", resource);
"""

PEOPLE = """organisation = "acme"
[groups]
ops = ["person:bob"]
"""

# What is asked changes a file, which a person has to approve. Everything else is answered at once.
SCRIPT = """context_tokens = 10000000

[[turn]]
when = { message_contains = "Change the notes", turn = 1 }
calls = [{ name = "execute", arguments = { command = "true" } }]

[[turn]]
when = { message_contains = "Change the notes", turn = 2 }
calls = [{ name = "write_file", arguments = { file_path = "/workspace/notes.txt", content = "two" } }]

[[turn]]
when = { message_contains = "" }
text = "Done."
"""


class World:
    def __init__(self, program, root):
        self.program, self.root = program, Path(root)
        self.child, self.url, self.keys = None, None, {}
        shutil.rmtree(self.root, ignore_errors=True)
        for name in ("home", "config", "cache", "state", "data", "repo"):
            (self.root / name).mkdir(parents=True)
        files = json.dumps([str(self.root / "rules.cedar")])
        people = json.dumps(str(self.root / "people.toml"))
        self.write("rules.cedar", RULES)
        self.write("people.toml", PEOPLE)
        self.write("script.toml", SCRIPT)
        self.write("repo/notes.txt", "one\n")
        self.write(
            "config.toml",
            f"[policy]\nfiles = {files}\npeople = {people}\n[limits]\nsteps_max = 100000\n",
        )

    def write(self, name, text):
        (self.root / name).write_text(text, encoding="utf-8")

    def env(self):
        at = {
            "HOME": "home",
            "XDG_CONFIG_HOME": "config",
            "XDG_DATA_HOME": "home/share",
            "XDG_CACHE_HOME": "cache",
            "XDG_STATE_HOME": "state",
            "OUTRIGGER_DATA_DIR": "data",
            "OUTRIGGER_CONFIG": "config.toml",
        }
        return {"PATH": PATH, **{name: str(self.root / file) for name, file in at.items()}}

    def serve(self):
        args = ["serve", "--listen", "127.0.0.1:0", "--dir", "repo", "--script", "script.toml", "--json"]
        with open(self.root / "server.log", "w", encoding="utf-8") as log:
            self.child = subprocess.Popen(
                [self.program, *args],
                env=self.env(),
                cwd=self.root,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        timer = threading.Timer(BEGIN_S_MAX, self.child.kill)
        timer.start()
        said = self.child.stdout.readline()
        timer.cancel()
        if not said:
            raise RuntimeError(f"the server did not begin to serve: {self.log()}")
        self.url = json.loads(said)["url"]

    def log(self):
        return (self.root / "server.log").read_text(encoding="utf-8", errors="replace")[-2_000:]

    def key(self, person):
        """The key of a person; it is made once."""
        if person not in self.keys:
            args = [self.program, "keys", "create", person, "--person", person, "--json"]
            made = subprocess.run(
                args, env=self.env(), cwd=self.root, stdout=subprocess.PIPE, check=True, timeout=30
            )
            self.keys[person] = json.loads(made.stdout)["secret"]
        return self.keys[person]

    def ask(self, key, method, path, body=None, headers=None):
        """The status, and what was answered: of a stream, its beginning."""
        headers = dict(headers or {})
        if key:
            headers["Authorization"] = f"Bearer {key}"
        data = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=ANSWER_S_MAX) as answer:
                if answer.headers.get_content_type() == "text/event-stream":
                    return answer.status, ""
                return answer.status, answer.read().decode("utf-8", "replace")
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode("utf-8", "replace")

    def end(self):
        """Ends the server, and says whether it ended as it should."""
        self.child.send_signal(signal.SIGTERM)
        try:
            return self.child.wait(END_S_MAX) == 0
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
            return False

    def remove(self):
        """Ends everything, sandboxes too, which outlive a server, and deletes it."""
        if self.child is not None and self.child.poll() is None:
            self.end()
        end_spawner(self.root / "data/native")
        for _ in range(50):
            shutil.rmtree(self.root, ignore_errors=True)
            if not self.root.exists():
                return
            time.sleep(0.1)


def end_spawner(native):
    """What keeps the sandboxes ends when its socket is gone, and looks when somebody called."""
    if not (native / "spawner.sock").exists():
        return
    # The path of a socket is short (unix(7)), whatever the path of this directory is.
    held = os.open(native, os.O_RDONLY)
    call = socket.socket(socket.AF_UNIX)
    try:
        call.connect(f"/proc/self/fd/{held}/spawner.sock")
    except OSError:
        pass  # It has ended.
    (native / "spawner.sock").unlink(missing_ok=True)
    call.close()
    os.close(held)
