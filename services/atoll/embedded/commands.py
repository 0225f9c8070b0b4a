"""`atoll up`, `atoll down`, `atoll status`: the signatures are the command lines."""

import asyncio
import os
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from atoll.client.endpoints import DEFAULT_NAME
from atoll.embedded import bring_down, bring_up, overview
from atoll.embedded.layout import Layout
from atoll.embedded.told import Told

Output = Annotated[Literal["table", "json"], Parameter(name=["--output", "-o"])]


def up(
    *,
    clusters: str | None = None,
    data_dir: Path | None = None,
    name: str | None = None,
    foreground: bool = False,
) -> int:
    """Start the whole control plane on this machine, with this machine as a cluster.

    PostgreSQL, etcd, Valkey and every service run as processes that listen on loopback
    only. What they keep stays over `atoll down` and the next `atoll up`.

    Args:
        clusters: Clusters file (YAML), or the name of an example: demo, simulated.
            Left out: those of last time, at first this machine alone.
        data_dir: Folder for all data; default: below the user's state folder, for root
            /var/lib/atoll/NAME.
        name: Name of this control plane, for several on one machine; default: `default`.
        foreground: Stay, tell what happens, and end everything at Ctrl-C or SIGTERM.
    """
    layout = Layout.of(_name(name), data_dir)
    return asyncio.run(bring_up.bring_up(layout, clusters=clusters, foreground=foreground))


def down(*, data_dir: Path | None = None, name: str | None = None) -> int:
    """End the control plane that `atoll up` started, with all its processes; data are kept.

    What the local cluster still runs is stopped, and runs anew after the next `atoll up`.

    Args:
        data_dir: Its data folder, when it was started by another user or ATOLL_STATE_DIR.
        name: Its name; default: `default`.
    """
    return asyncio.run(bring_down.bring_down(Layout.of(_name(name), data_dir)))


def status(
    *, output: Output = "table", data_dir: Path | None = None, name: str | None = None
) -> int:
    """Show the processes, the leader and the clusters of the control plane on this machine.

    Args:
        output: Form of the answer.
        data_dir: Its data folder, when it was started by another user or ATOLL_STATE_DIR.
        name: Its name; default: `default`.
    """
    return overview.show(Layout.of(_name(name), data_dir), output=output)


def doctor_checks() -> tuple[Told, ...]:
    """What `atoll doctor` asks about this machine: (what, whether it is well, what to do)."""
    from atoll.embedded import checks  # loads the libraries of the database

    return tuple(asyncio.run(checks.run(Layout.of(_name(None), None))))


def _name(given: str | None) -> str:
    return given or os.environ.get("ATOLL_NAME") or DEFAULT_NAME
