"""The schemas describe what commands print: the stored documents of every command satisfy them."""

import json
from pathlib import Path

import pytest

from latfit.cli.schema import schema_of, schemas

jsonschema = pytest.importorskip("jsonschema")

GOLDEN = Path(__file__).parent.parent / "contract" / "golden"
PROSE = {"message", "notes", "snippet", "path", "title"}  # left out of the stored documents


def without_prose(schema):
    """The same schema for documents that were stored without their prose."""
    if isinstance(schema, list):
        return [without_prose(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: [name for name in value if name not in PROSE] if key == "required" else without_prose(value)
        for key, value in schema.items()
    }


def problems(document, schema):
    return [
        f"{error.json_path}: {error.message:.80}"
        for error in jsonschema.Draft202012Validator(schema).iter_errors(document)
    ]


def documents():
    for path in sorted(GOLDEN.glob("*.json")):
        for name, document in json.loads(path.read_text()).items():
            parts = (
                document if path.stem in ("formats", "real-logs") and isinstance(document, dict) else {name: document}
            )
            for part, each in parts.items():
                command = next((known for known in schemas() if part in (known,) or part.startswith(f"{known}-")), None)
                if command and isinstance(each, dict) and set(each) != {"exit"}:
                    yield f"{path.stem}:{name}:{part}", command, each


@pytest.mark.parametrize("command", schemas())
def test_stored_documents_satisfy_their_schema(command):
    schema = without_prose(schema_of(command))
    stored = [(name, document) for name, of, document in documents() if of == command and document]
    wrong = [f"{name} {text}" for name, document in stored for text in problems(document, schema)]
    assert not wrong, "\n".join(wrong[:20])


def test_most_commands_have_stored_documents():
    assert {command for _, command, _ in documents()} >= {"analyze", "timeout", "outliers", "fit", "drift", "compare"}


def test_a_missing_field_is_noticed():
    assert len(problems({"cutoff": "soon"}, schema_of("outliers"))) > 5


def test_the_command_prints_one_or_all(run):
    assert json.loads(run("schema", "analyze").stdout)["properties"]["timeout"]
    assert list(json.loads(run("schema").stdout)) == schemas()
    done = run("schema", "analyse")
    assert done.returncode == 2
    assert "analyze" in done.stderr
