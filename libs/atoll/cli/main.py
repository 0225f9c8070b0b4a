"""Where the `atoll` command begins. What needs no library is answered before one is loaded."""

import sys
from collections.abc import Sequence


def main() -> None:
    """Run the command line of this process, and exit."""
    sys.exit(run(sys.argv[1:]))


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
