"""What is done to requests that were made up, before they are sent."""

import gzip
import json
from pathlib import Path

import schemathesis

# Sessions that others look into: of each the one that is ended in its place.
KEPT = json.loads(Path("kept.json").read_text(encoding="utf-8"))


@schemathesis.serializer("application/gzip")
def compressed(context, value):
    """Compresses what was made up for a directory: it is no archive, but for the compression."""
    return gzip.compress(value if isinstance(value, bytes) else json.dumps(value).encode())


@schemathesis.serializer("application/x-tar")
def unpacked(context, value):
    """Sends what was made up for an archive as it is: it is none."""
    return value if isinstance(value, bytes) else json.dumps(value).encode()


@schemathesis.hook
def before_call(context, case, kwargs):
    """Waits a second at most for events that do not come, where it would be half a minute each
    time, and leaves sessions alone that others look into."""
    wait = str(case.query.get("wait", "")) if case.query else ""
    if wait.isascii() and wait.isdecimal() and int(wait) > 1:
        case.query["wait"] = 1
    # So that a command that does not end is not waited for either.
    if case.path.endswith("/execs") and isinstance(case.body, dict) and "wait" not in case.body:
        case.body["wait"] = 1
    if case.path.endswith(("/cancel", "/rewind")):
        named = case.path_parameters.get("id")
        case.path_parameters["id"] = KEPT.get(named, named)
