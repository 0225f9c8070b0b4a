"""The small service as a process of its own; `--fail` makes it fail after its start."""

import sys

from pydantic import Field

from atoll.runtime.process import Process, run
from atoll.runtime.settings import ServiceSettings
from tests.runtime.echo import services


class EchoSettings(ServiceSettings):
    """What it can be told."""

    fail: bool = Field(default=False, description="fail after the start")


async def serve(process: Process[EchoSettings]) -> None:
    """Serve until stopped."""
    process.server_for(services())
    if process.settings.fail:
        raise RuntimeError("failed on purpose")
    await process.serve_until_stopped()


if __name__ == "__main__":
    sys.exit(run("echo", EchoSettings, serve))
