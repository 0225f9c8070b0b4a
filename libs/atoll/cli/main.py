"""Where the `atoll` command begins. What needs no library is answered before one is loaded."""

import sys
from collections.abc import Sequence

INTERRUPTED = 130
"""What shells take for the end by Ctrl-C, where a command has no code of its own for it."""


def main() -> None:
    """Run the command line of this process, and exit."""
    try:
        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        code = INTERRUPTED
    sys.exit(code)


def run(words: Sequence[str]) -> int:
    """Run a command line; the exit code."""
    match list(words):
        case [] | ["--help"] | ["-h"] | ["help"]:
            from atoll.cli.table import root_help

            print(root_help(), end="")
            return 0
        case ["version"] | ["--version"]:
            from atoll.cli.commands.version import version

            return version()
        case _:
            from atoll.cli.app import invoke

            return invoke(words)


if __name__ == "__main__":
    main()
