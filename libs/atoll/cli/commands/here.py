"""`atoll up`, `down`, `status`: commands of the control plane that runs on this machine.

They belong to the embedded launcher, which comes with an extra of its own; here they are only
found by name, and their signatures are the command line.
"""

import importlib
from collections.abc import Callable
from typing import Annotated, Any, Final

from cyclopts import Parameter

from atoll.core.model.errors import ErrorCode, Unavailable

MODULE: Final = "atoll.embedded.commands"
EXTRA: Final = "pip install 'atoll[embedded]'"


def plugin(name: str) -> Callable[..., Any]:
    """The launcher's function of this name, or one that says how to get it."""
    try:
        found: Callable[..., Any] = getattr(importlib.import_module(MODULE), name)
    except ImportError as error:
        return _missing(name, error.name or str(error))
    except AttributeError:
        return _missing(name, f"{MODULE}.{name}")
    return found


def _missing(name: str, what: str) -> Callable[..., int]:
    def command(
        *words: Annotated[str, Parameter(allow_leading_hyphen=True, show=False)],
    ) -> int:
        raise Unavailable(
            f"`atoll {name}` needs the embedded control plane ({what} is missing): {EXTRA}",
            code=ErrorCode.UNAVAILABLE,
        )

    command.__doc__ = f"Needs the embedded control plane: {EXTRA}"
    return command


up = plugin("up")
down = plugin("down")
status = plugin("status")
