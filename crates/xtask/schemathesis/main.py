"""Asks the real server, with a scripted model, what its contract lets people ask, and what it does
not: for each seed in a world of its own, which is gone afterwards.

`cargo xtask schemathesis` starts it, and gives it everything that it needs of this machine."""

import argparse
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import rights
from world import World

# Streams do not end. Logging out ends the run: its key is good no more.
LEFT_OUT = ("/v1/updates", "/v1/sessions/{id}/stream", "/v1/sandboxes/{id}/execs/{exec}/stream", "/v1/logout")
# What a path, a cursor or words name can't be told by a schema, so that much of what fits the
# schema is refused; and JSON has whole numbers with a fraction of zero, which serde refuses.
UNCHECKED = "positive_data_acceptance"
# What is refused where a request does not fit the schema: any of these says so.
REFUSED = ["400", "401", "402", "403", "404", "405", "409", "412", "413", "415", "428"]
SEED_S_MAX = 900


def configure(world, owned):
    """What it is to know of the world, so that not everything is about things that are not there."""
    known = {
        "sessions": owned.sessions,
        "sandboxes": [owned.sandbox],
        "execs": ["mark"],
        "ended": owned.ended,
        "approvals": owned.approvals[:2],
        "answered": owned.approvals[2:],
        "secrets": owned.secrets,
        "revoked": owned.secrets[1:],
        "paths": ["/workspace", "/workspace/notes.txt", "/memory/user", rights.NOTES],
        "versions": ['"1"', '"2"', '"3"'],
        "hosts": ["api.example.com", "https://example.com/v1/*"],
        "numbers": [1, 2, 3, 4, 5, 6],
        "accounts": ["user:nobody", "user:zoe"],
    }
    everywhere = {"path.exec": "execs", "path.effect": "numbers", "path.number": "numbers", "path.seq": "numbers", "query.path": "paths"}
    everywhere |= {"header.If-Match": "versions", "body.for[*]": "hosts"}
    somewhere = [
        ("GET", "^/v1/sessions/", {"path.id": "sessions"}),
        ("POST", "^/v1/sessions/.*/(?!cancel|rewind)", {"path.id": "sessions"}),
        ("PUT", "^/v1/sessions/", {"path.id": "sessions"}),
        ("GET", "^/v1/sandboxes/", {"path.id": "sandboxes"}),
        ("POST", "^/v1/sandboxes/", {"path.id": "sandboxes"}),
        ("PUT", "^/v1/sandboxes/", {"path.id": "sandboxes"}),
        ("GET", "^/v1/approvals/", {"path.id": "approvals"}),
        ("POST", "^/v1/memory/revert$", {"body.to": "numbers"}),
        ("POST", "/files/move$", {"path.id": "sandboxes", "body.from": "paths"}),
        ("PUT", "^/v1/secrets/", {"path.name": "secrets"}),
        ("POST", "^/v1/secrets/", {"path.name": "secrets"}),
    ]
    # What ends something ends nothing that the others need.
    alone = [
        ("POST", "/(cancel|rewind)$", {"path.id": "ended"}),
        ("POST", "^/v1/approvals/", {"path.id": "answered"}),
        ("DELETE", "^/v1/secrets/", {"path.name": "revoked"}),
        # One that is stopped begins nothing any more.
        ("PUT", "^/v1/budgets/", {"path.account": "accounts"}),
    ]
    kept = [*owned.sessions, *owned.asking]
    world.write("kept.json", json.dumps(dict(zip(kept, owned.ended))))
    people = [rights.OWNER, rights.OTHER]
    signed = [{"name": "Authorization", "value": f"Bearer {world.key(person)}"} for person in people]
    auth = [{"name": person, "fixedHeaders": [header]} for person, header in zip(people, signed)]
    world.write("auth.json", json.dumps({"auth": auth}))
    tables = [f"[dictionaries.{name}]\nvalues = {json.dumps(values)}" for name, values in known.items()]
    tables += [f"[checks.negative_data_rejection]\nexpected-statuses = {json.dumps(REFUSED)}"]
    tables += [f'[auth.wfc]\npath = "auth.json"\nuser = "{people[0]}"\npeers = {json.dumps(people)}']
    tables += ["[parameters]\n" + drawn(everywhere, 0.7, "\n")]
    for places, probability in ((somewhere, 0.7), (alone, 1.0)):
        for method, regex, names in places:
            which = f'include-method = "{method}"\ninclude-path-regex = "{regex}"'
            tables.append(f"[[operations]]\n{which}\nparameters = {{ {drawn(names, probability, ', ')} }}")
    world.write("schemathesis.toml", "\n\n".join(tables) + "\n")


def drawn(names, probability, between):
    """Parameters that are drawn from what is known, so often."""
    value = '{{ dictionary = "{}", probability = {} }}'
    return between.join(f'"{place}" = {value.format(name, probability)}' for place, name in names.items())


def fuzz(world, seed, cases):
    """What was tried, and what it says of itself."""
    report = world.root / "report.json"
    command = [Path(sys.executable).with_name("schemathesis"), "--config-file", "schemathesis.toml", "run"]
    command += [f"{world.url}/openapi.json", "--seed", str(seed), "--max-examples", str(cases)]
    command += ["--exclude-checks", UNCHECKED, "--continue-on-failure", "--request-timeout", "40"]
    command += ["--generation-database", "none", "--no-color", "--report", "json", "--report-json-path", report]
    for path in LEFT_OUT:
        command += ["--exclude-path", path]
    with open(world.root / "said.txt", "w", encoding="utf-8") as said:
        suite = {"PYTHONPATH": str(Path(__file__).parent), "SCHEMATHESIS_HOOKS": "hooks"}
        env = {**os.environ, **suite}
        subprocess.run(
            command, cwd=world.root, env=env, stdout=said, stderr=said, timeout=SEED_S_MAX, check=False
        )
    text = (world.root / "said.txt").read_text(encoding="utf-8")
    if not report.exists():
        raise RuntimeError(f"schemathesis did not come to an end: {text[-4_000:]}")
    return json.loads(report.read_text(encoding="utf-8")), text


def run(world, seed, cases):
    """Whether nothing was found with a seed."""
    world.serve()
    owned = rights.Owned(world)
    configure(world, owned)
    document = json.loads(world.ask(None, "GET", "/openapi.json")[1])
    asked, wrong = rights.check(world, owned, document)
    report, said = fuzz(world, seed, cases)
    ended = world.end()
    tested, generated = report["operations"]["tested"], report["test_cases"]["generated"]
    found = sum(failure["count"] for failure in report["failures"])
    errors = sum(error["count"] for error in report["errors"])
    print(
        f"seed {seed}: {tested} operations, {generated} cases, {found} failures, {errors} errors; "
        f"{asked} requests without a right, {len(wrong)} wrong answers",
        flush=True,
    )
    for line in wrong:
        print(f"  {line}")
    if found or errors:
        begin = min(at for at in (said.find("= ERRORS ="), said.find("= FAILURES ="), len(said)) if at >= 0)
        end = said.find("= WARNINGS =")
        print(said[begin : end if end > begin else None])
    if not ended:
        print(f"the server did not end as it should: {world.log()}")
    clean = report["exit_code"] == 0 and report["complete"]
    return clean and ended and not (found or errors or wrong)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--dir", required=True)
    parser.add_argument("--seeds", type=int, required=True)
    parser.add_argument("--first", type=int, required=True)
    parser.add_argument("--cases", type=int, required=True)
    asked = parser.parse_args()
    # What it began has to end with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    clean = True
    for seed in range(asked.first, asked.first + asked.seeds):
        world = World(asked.program, Path(asked.dir) / f"world-{seed}")
        try:
            clean = run(world, seed, asked.cases) and clean
        finally:
            world.remove()
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main())
