"""Bookings by name or number, and how one is printed for programs."""

import json
from typing import Annotated

from cyclopts import Parameter

from atoll.cli.options import Format
from atoll.cli.plain import plain
from atoll.cli.render import print_yaml

Booking = Annotated[str, Parameter(name="NAME")]


def key(name: str) -> int | str:
    """What the service knows a booking by: names that are numbers alone are its numbers."""
    return int(name) if name.isdigit() else name


def print_plain(value: object, output: Format) -> None:
    """Print one value as JSON or YAML."""
    if output == "yaml":
        print_yaml(plain(value))
    else:
        print(json.dumps(plain(value), indent=2 if output == "json" else None))
