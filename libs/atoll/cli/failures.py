"""Says what went wrong, so that the reader knows what to do. Never a traceback, unless asked."""

import os
import sys
from collections.abc import Iterator
from typing import Final

from atoll.cli import exits
from atoll.core.model.errors import DomainError, ErrorCode, InvalidInput
from atoll.core.model.refusal import BookingRefused

DEBUG: Final = "ATOLL_DEBUG"
MOST_SHOWN: Final = 20


class WrongUse(Exception):
    """The command line does not say what is to be done; the message says what would be right."""


def usage(message: str, command: str) -> int:
    """A command line that cannot be understood."""
    page = f"atoll {command} --help" if command else "atoll --help"
    _say(f"atoll: {message.strip()}", f"see `{page}`")
    return exits.USAGE


def report(error: Exception) -> int:
    """Tell of an error; the exit code that belongs to it."""
    if os.environ.get(DEBUG):
        import traceback

        traceback.print_exception(error)
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, WrongUse):
        _say(f"atoll: {error}")
        return exits.USAGE
    if isinstance(error, DomainError):
        _say(*_refusal(error), *_in_the_way(error))
        return exits.of_error(error)
    if isinstance(error, OSError):
        _say(f"atoll: {_os_error(error)}")
        return exits.USAGE
    return _fault(error)


def _fault(error: Exception) -> int:
    from atoll.client.errors import CallFailed, NotAllowed

    if isinstance(error, NotAllowed):
        _say(f"atoll: {error.status}: {error.message or 'you may not do this'}")
        return exits.NOT_ALLOWED
    if isinstance(error, CallFailed):
        _say(f"atoll: the server failed: {error}")
        return exits.INTERNAL
    _say(f"atoll: internal error: {type(error).__name__}: {error}", f"{DEBUG}=1 shows more")
    return exits.INTERNAL


def _refusal(error: DomainError) -> Iterator[str]:
    if isinstance(error, InvalidInput):
        yield f"atoll: {error.code}"
        for violation in error.violations[:MOST_SHOWN]:
            yield f"  {violation.field}: {violation.message}"
        if (more := len(error.violations) - MOST_SHOWN) > 0:
            yield f"  … and {more} more"
        return
    yield f"atoll: {error.code}: {error.message}"
    if hint := _hint(error):
        yield f"  {hint}"


def _in_the_way(error: DomainError) -> Iterator[str]:
    """What keeps a booking from being had, and what could be had instead."""
    if not isinstance(error, BookingRefused):
        return
    from atoll.cli.booking_text import candidate_lines, obstacle_lines

    yield from obstacle_lines(error.obstacles)
    if error.alternatives:
        yield "could be had instead:"
        yield from candidate_lines(error.alternatives)


def _hint(error: DomainError) -> str:
    if "setting" in error.metadata:
        return ""
    match error.code:
        case ErrorCode.UNAVAILABLE if "address" in error.metadata:
            return (
                "is a control plane running? `atoll up` starts one here; "
                "ATOLL_ENDPOINT or --endpoint names another; `atoll doctor` checks"
            )
        case ErrorCode.AGENT_UNREACHABLE:
            return (
                "its output is kept by the agent; try again when `atoll clusters` shows it ACTIVE"
            )
        case ErrorCode.QUEUE_NOT_FOUND:
            return "`atoll queue ls` lists the queues, `atoll queue create NAME` makes one"
        case ErrorCode.JOB_NOT_FOUND:
            return "`atoll ls` lists the jobs"
        case ErrorCode.CURSOR_EXPIRED:
            return "start without --cursor, after `atoll ls`"
        case _:
            return ""


def _os_error(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}"


def _say(*lines: str) -> None:
    sys.stdout.flush()
    for line in lines:
        print(line, file=sys.stderr)
