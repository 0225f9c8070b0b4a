"""`atoll run -- COMMAND`."""

from typing import Annotated

from cyclopts import Parameter

from atoll.cli import exits
from atoll.cli.failures import WrongUse
from atoll.cli.follow import detached, follow_to_end, move_text
from atoll.cli.notes import Notes
from atoll.cli.options import DEFAULT_CONNECTION, Connection
from atoll.cli.wanted import Wanted

Command = Annotated[str, Parameter(name="--command", show=False)]
DEFAULT_WANTED = Wanted()


def run(
    *,
    command: Command = "",
    wanted: Wanted = DEFAULT_WANTED,
    quiet: Annotated[bool, Parameter(negative=())] = False,
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """Submit a command, show its output, and end with its exit code.

    The command stands behind `--`: `atoll run --gpus H100:2 -- python train.py`. One word is a
    shell script: `atoll run -- 'date; sleep 5'`. Progress goes to stderr, output to stdout.
    Ctrl-C detaches; the job goes on.

    Args:
        command: The command.
        wanted: What the job needs.
        quiet: Do not tell progress.
        connection: Where the control plane is.
    """
    if not command:
        raise WrongUse("say what to run, behind `--`: atoll run -- hostname")
    spec = wanted.of_command(command)
    if spec.array:
        raise WrongUse("--array makes several jobs: use `atoll submit`, then `atoll wait`")
    with connection.client() as client, Notes(quiet=quiet) as notes:
        job = client.submit(spec)
        try:
            info = follow_to_end(job, notes)
        except KeyboardInterrupt:
            notes.rest()
            return detached([job.id], "logs -f")
    notes.say(move_text(info))
    return exits.of_run(info.state, info.exit_code)
