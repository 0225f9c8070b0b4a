"""The reference of the job spec says what is there."""

from pathlib import Path

import pytest

from atoll.client.spec import parse_spec, parse_text
from atoll.client.spec.models import Alternative, Resources, Spec
from atoll.client.spec.reader import read_documents

REFERENCE = (Path(__file__).parents[2] / "docs" / "spec.md").read_text()
EXAMPLES = [part.split("```")[0] for part in REFERENCE.split("```yaml\n")[1:]]


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_is_accepted(example: str) -> None:
    for document in read_documents(example):
        needed = {} if document.value.keys() & {"run", "groups"} else {"run": "true"}
        assert parse_spec({**needed, **document.value}).queue


@pytest.mark.parametrize("key", sorted({*Spec.model_fields, *Resources.model_fields}))
def test_every_key_is_told(key: str) -> None:
    assert f"`{key}`" in REFERENCE


def test_every_accelerator_in_the_reference_is_accepted() -> None:
    rows = [
        line
        for line in REFERENCE.splitlines()
        if line.startswith("| `H100") or "1g.10gb:2`," in line
    ]
    words = [word for row in rows for word in row.split("|")[1].replace("`", "").split(", ")]
    assert len(words) == 8
    for word in words:
        assert Alternative.model_validate({"accelerators": word.strip()}).accelerators


def test_what_the_reference_refuses_is_refused() -> None:
    for line in ("memory: 16", "memory: 16G", "accelerators: H100:1.5", "accelerators: H100:0.333"):
        with pytest.raises(Exception, match="resources"):
            parse_text(f"run: x\nresources: {{{line}}}\n")
