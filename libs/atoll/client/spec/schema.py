"""The JSON Schema of the job spec, for editors. `python -m atoll.client.spec.schema` prints it."""

import json
from importlib import resources
from typing import Final

from atoll.client.spec.models import Spec

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def generated() -> str:
    """The schema as the models give it now; the committed `schema.json` is equal to it."""
    schema = {"$schema": DIALECT, **Spec.model_json_schema(), "title": "Atoll job spec"}
    return json.dumps(schema, indent=2) + "\n"


def shipped() -> str:
    """The schema as installed."""
    return (resources.files(__package__) / "schema.json").read_text(encoding="utf-8")


if __name__ == "__main__":
    import sys

    sys.stdout.write(generated())
