"""Takes a command line apart, calls the command, and turns what is raised into words and a code."""

import os
import shlex
import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError, Parameter, UnusedCliTokensError

from atoll.cli import exits, failures
from atoll.cli.table import COMMANDS, SUMMARY

COMMAND_OPTION = "--command"
STDIN = "/dev/stdin"
"""What `-` becomes: a single hyphen is taken for an option that nobody knows."""
_READ_FILES = ("submit", "plan", "resv import")
_TAKE_COMMANDS = ("run", "submit", "plan")


def invoke(words: Sequence[str]) -> int:
    """Run a command line; the exit code. Only KeyboardInterrupt is raised."""
    # gRPC's own log would stand between our lines; what it has to say is in the errors.
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    try:
        return _called(build(), with_stdin(with_command(words)))
    except BrokenPipeError:
        # Who read our output has enough of it: `atoll ls | head`.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exits.OK
    except Exception as error:
        return failures.report(error)


def build() -> App:
    """The whole command line; modules of commands are loaded when they are named."""
    app = App(
        name="atoll",
        help=SUMMARY,
        help_format="plaintext",
        default_parameter=Parameter(show_default=False),
        version_flags=(),
        suppress_keyboard_interrupt=False,
        print_error=False,
        exit_on_error=False,
        result_action="return_value",
    )
    for command in COMMANDS:
        app.command(
            f"atoll.cli.commands.{command.target}",
            name=command.name,
            help=command.help,
            group=command.group,
        )
    return app


def with_command(words: Sequence[str]) -> list[str]:
    """Turns what follows `--` of `run`, `submit` and `plan` into one option.

    One word is a shell script; several are a program with its arguments.
    """
    words = list(words)
    if not words or words[0] not in _TAKE_COMMANDS or "--" not in words:
        return words
    cut = words.index("--")
    rest = words[cut + 1 :]
    script = rest[0] if len(rest) == 1 else shlex.join(rest)
    return [*words[:cut], f"{COMMAND_OPTION}={script}"]


def with_stdin(words: list[str]) -> list[str]:
    """Turns `-` into a file, for commands that read one."""
    if not words or " ".join(words[: 1 + (words[0] == "resv")]) not in _READ_FILES:
        return words
    return [STDIN if word == "-" else word for word in words]


def _called(app: App, words: list[str]) -> int:
    try:
        result = app(words)
    except CycloptsError as error:
        command = _known_command(words)
        deepest = " ".join(error.command_chain or ()) or command
        return failures.usage(_told(error, command), deepest)
    return result if isinstance(result, int) else exits.OK


def _told(error: CycloptsError, command: str) -> str:
    if isinstance(error, UnusedCliTokensError):
        words = " ".join(error.unused_tokens or ())
        if command in _TAKE_COMMANDS:
            return f"put `--` before the command: atoll {command} -- {words}"
        return f"too many words: {words}"
    error.verbose = False
    return str(error)


def _known_command(words: list[str]) -> str:
    return next((c.name for c in COMMANDS if c.name == words[0]), "") if words else ""
