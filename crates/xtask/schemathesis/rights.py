"""What the server has to be asked about, and that nobody else gets at it: every operation of the
contract is tried without a key, with a wrong one, and with another person's."""

import json
import time
from urllib.parse import quote, urlencode

# It stands in all that is the owner's, so that it is found wherever it comes out.
MARK = "mark-51b7c0d2"
VALUE = "value-9e0f6ab4"
OWNER, OTHER = "person:local", "person:bob"
NOTES = "/memory/user/notes.md"
# So many of what can be ended or answered once.
ENDED = 10

# A body that is taken, of each operation that takes one: what is refused for its body says
# nothing about rights.
BODIES = {
    "answer_approval": {"answer": "deny"},
    "answer_device_login": {"answer": "refuse"},
    "answer_proposal": {"answer": "withdraw"},
    "comment_proposal": {"text": "none"},
    "apply_changes": {},
    "cancel_session": {"reason": "none"},
    "create_sandbox": {},
    "create_session": {"text": "Hello"},
    "explain_rules": {"action": "execute", "resource": "sandbox"},
    "fork_sandbox": {},
    "fork_session": {},
    "move_sandbox_file": {"from": "marked", "to": "marked"},
    "read_objects": {},
    "redact_entry": {"path": NOTES, "why": "none"},
    "revert_entry": {"path": NOTES, "to": 1},
    "rewind_session": {},
    "rotate_secret": {"value": "another-value"},
    "send_webhook": {"issue": 1},
    "run_command": {"shell": "true"},
    "resume_session": {},
    "send_message": {"text": "Hello"},
    "set_account": {"limit": {"steps": 1000000000}},
    "set_sandbox_network": {"network": ["none"]},
    "set_secret": {"value": "another-value", "for": ["api.example.com"]},
    "share_session": {"with": "person:bob", "access": "take_part"},
    "suspend_sandbox": {},
    "take_snapshot": {},
    "type_to_command": {"text": "none"},
    # It is no archive, which is told to who may send one.
    "upload_workspace": {},
    "write_agent": {"task": "none"},
    "write_entry": {"text": "none"},
    "write_sandbox_archive": {},
    "write_sandbox_file": {},
}


class Owned:
    """What the owner has, and its names."""

    def __init__(self, world):
        self.world, self.key = world, world.key(OWNER)
        # With a sandbox, and a question that waits. What ends or answers one has its own ones, so
        # that the others stay.
        self.sessions, self.asking, self.answered = (
            [self.begin(f"Change the notes {MARK}") for _ in range(many)] for many in (4, 2, ENDED)
        )
        self.ended = [self.begin(f"Hello {MARK}") for _ in range(ENDED)]
        self.write(NOTES, {"If-None-Match": "*"})
        self.write(NOTES, {"If-Match": '"1"'})
        self.proposal = self.write("/memory/organisation/notes.md", {"If-None-Match": "*"})["proposal"]
        self.secrets = ["API_TOKEN", *(f"OLD_{number}" for number in range(ENDED))]
        for name in self.secrets:
            self.asked("PUT", f"/v1/secrets/{name}", {"value": VALUE, "for": ["api.example.com"]})
        self.approvals = self.waiting(self.asking + self.answered)
        self.sandbox = self.asked("POST", "/v1/sandboxes", {"label": MARK})["id"]
        self.asked("POST", f"/v1/sandboxes/{self.sandbox}/execs", {"id": "mark", "shell": f"touch marked; echo {MARK}"})
        self.snapshot = self.asked("POST", f"/v1/sandboxes/{self.sandbox}/snapshots", {"label": MARK})["id"]

    def asked(self, method, path, body=None, headers=None):
        status, text = self.world.ask(self.key, method, path, body, headers)
        if status >= 300:
            raise RuntimeError(f"{method} {path}: {status} {text}")
        return json.loads(text)

    def begin(self, text):
        return self.asked("POST", "/v1/sessions", {"text": text})["id"]

    def write(self, path, headers):
        address = "/v1/memory/content?" + urlencode({"path": path})
        return self.asked("PUT", address, {"text": f"notes {MARK}\n"}, headers)

    def waiting(self, sessions):
        """What waits in these sessions, each by its name."""
        for _ in range(300):
            waiting = {it["session"]: it["id"] for it in self.asked("GET", "/v1/approvals")["data"]}
            if all(session in waiting for session in [*self.sessions, *sessions]):
                return [waiting[session] for session in sessions]
            time.sleep(0.1)
        raise RuntimeError("what is asked does not wait for a person")

    def address(self, path, operation):
        """An address of an operation, of something that is the owner's."""
        kinds = {"/v1/approvals": self.approvals[0], "/v1/sandboxes": self.sandbox, "/v1/snapshots": self.snapshot}
        owned = next((name for kind, name in kinds.items() if path.startswith(kind)), self.sessions[0])
        known = {"id": owned, "exec": "mark", "number": self.proposal, "name": "API_TOKEN", "effect": 3, "seq": 2, "code": "BBBB-BBBB"}
        for name, value in known.items():
            path = path.replace("{" + name + "}", quote(str(value)))
        wanted = [it for it in operation.get("parameters", []) if it["in"] == "query" and it.get("required")]
        given = {it["name"]: it.get("example", NOTES) for it in wanted}
        return f"{path}?{urlencode(given)}" if given else path


def operations(document):
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method.upper(), operation


def check(world, owned, document):
    """How many requests were made, and what is wrong."""
    asked, wrong = 0, []
    other = world.key(OTHER)
    for path, method, operation in operations(document):
        name, address = operation["operationId"], owned.address(path, operation)
        # What lets people in asks for no key.
        if operation.get("security") in ([], [{}]):
            continue
        if "requestBody" in operation and name not in BODIES:
            raise RuntimeError(f"{name} takes a body, and BODIES has none for it")
        body = BODIES.get(name)
        # It would log the other one out, which is what it is for.
        keys = [None, "outrigger_" + "0" * 64] + ([] if name == "log_out" else [other])
        for key in keys:
            status, text = world.ask(key, method, address, body)
            asked += 1
            if why := judged(path, name, status, text, key == other, owned):
                wrong.append(f"{method} {address} as {OTHER if key == other else 'nobody'}: {why}")
    return asked, wrong


def judged(path, name, status, text, is_other, owned):
    """What is wrong with an answer, if anything is."""
    if not is_other:
        return None if status == 401 else f"{status}, and not 401"
    if path.startswith(tuple(f"/v1/{kind}/{{id}}" for kind in ("sessions", "approvals", "sandboxes", "snapshots"))) and status != 404:
        return f"{status}, and not 404"
    if name in ("set_secret", "rotate_secret", "revoke_secret") and status != 403:
        return f"{status}, and not 403"
    for hidden in (VALUE, *owned.sessions, *owned.asking, owned.sandbox, owned.snapshot):
        # A problem names what was asked for.
        if hidden in text and status < 300:
            return f"{status}, and it has `{hidden}`"
    # What is proposed for the organisation is for everybody to look at.
    if MARK in text and not path.startswith("/v1/proposals"):
        return f"{status}, and it has `{MARK}`"
    return None
