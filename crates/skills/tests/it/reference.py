"""Judges texts with the reference: one JSON value a line in, one a line out."""
import json, pathlib, sys, tempfile

import skills_ref

for line in sys.stdin:
    asked = json.loads(line)
    with tempfile.TemporaryDirectory() as top:
        folder = pathlib.Path(top) / asked["folder"]
        folder.mkdir()
        (folder / "SKILL.md").write_bytes(asked["text"].encode("utf-8"))
        answer = {"errors": [], "name": None, "description": None, "prompt": None}
        try:
            answer["errors"] = skills_ref.validate(folder)
            if not answer["errors"]:
                read = skills_ref.read_properties(folder)
                answer["name"], answer["description"] = read.name, read.description
                shown = skills_ref.to_prompt([folder])
                answer["prompt"] = shown.replace(str(folder.resolve()), "/skills/x")
        except Exception as error:
            answer["errors"] = [f"{type(error).__name__}: {error}"]
    print(json.dumps(answer), flush=True)
