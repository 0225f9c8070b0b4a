"""`python -m atoll.embedded DATA_DIR NAME`: the supervisor, in the foreground."""

import asyncio
import sys
from pathlib import Path

from atoll.embedded.layout import Layout
from atoll.embedded.run import run
from atoll.runtime import logs


def main() -> int:
    """Run the stack NAME in DATA_DIR, which `atoll up` has prepared; the exit code."""
    data, name = sys.argv[1:]
    logs.configure("info", form="json", service="embedded")
    return asyncio.run(run(Layout(name=name, data=Path(data))))


if __name__ == "__main__":
    sys.exit(main())
