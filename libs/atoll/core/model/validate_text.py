"""Rules of names, labels, environments and other text.

No text holds NUL: neither a process's environment nor the store can carry it.
"""

import re
from typing import Final

from atoll.core.model.validate_faults import Faults, shown

Pairs = tuple[tuple[str, str], ...]

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)
QUEUE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9][A-Za-z0-9_-]*)*", re.ASCII)
LABEL_KEY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*", re.ASCII)
VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")

MOST_NAME: Final = 128
MOST_QUEUE: Final = 256
MOST_QUEUE_LEVELS: Final = 8
MOST_LABELS: Final = 64
MOST_LABEL_KEY: Final = 128
MOST_LABEL_VALUE: Final = 256
MOST_VARIABLES: Final = 1_024
MOST_VARIABLE_NAME: Final = 256
MOST_VARIABLE_VALUE: Final = 65_536
MOST_PATH: Final = 1_024
MOST_SCRIPT: Final = 200_000

A_NAME: Final = "letters, digits, `.`, `_` and `-`, beginning with a letter or digit"
A_QUEUE: Final = "names of letters, digits, `_` and `-`, joined by dots"
A_LABEL_KEY: Final = "letters, digits, `.`, `_`, `/` and `-`, beginning with a letter or digit"
A_VARIABLE: Final = "letters, digits and `_`, not beginning with a digit"


def check_job_name(faults: Faults, at: str, name: str) -> None:
    """A job's name: 1 to 128 characters."""
    if not name:
        faults.add(at, f"is empty; a name has {A_NAME}")
    else:
        _check_form(faults, at, name, form=NAME, told=A_NAME, most=MOST_NAME)


def check_group_name(faults: Faults, at: str, name: str) -> None:
    """A task group's name; it may be empty."""
    if name:
        _check_form(faults, at, name, form=NAME, told=A_NAME, most=MOST_NAME)


def check_queue_name(faults: Faults, at: str, name: str) -> None:
    """A path in the queue tree: at most 8 levels and 256 characters."""
    _check_form(faults, at, name, form=QUEUE, told=A_QUEUE, most=MOST_QUEUE)
    if name.count(".") >= MOST_QUEUE_LEVELS:
        faults.add(at, f"has more than {MOST_QUEUE_LEVELS} levels")


def check_topology_level(faults: Faults, at: str, level: str) -> None:
    """The name of a level, such as `rack`."""
    _check_form(faults, at, level, form=NAME, told=A_NAME, most=MOST_NAME)


def check_device_kind(faults: Faults, at: str, kind: str) -> None:
    """The name of a kind of device; empty means any."""
    if kind:
        _check_form(faults, at, kind, form=NAME, told=A_NAME, most=MOST_NAME)


def check_labels(faults: Faults, at: str, labels: Pairs) -> None:
    """At most 64 labels of printable text."""
    faults.length(at, len(labels), least=0, most=MOST_LABELS, of="labels")
    for key, value in labels:
        _check_form(faults, at, key, form=LABEL_KEY, told=A_LABEL_KEY, most=MOST_LABEL_KEY)
        check_text(faults, f"{at}[{shown(key)}]", value, most=MOST_LABEL_VALUE)


def check_environment(faults: Faults, at: str, variables: Pairs) -> None:
    """At most 1,024 variables; the values are never shown, they may be secrets."""
    faults.length(at, len(variables), least=0, most=MOST_VARIABLES, of="variables")
    for name, value in variables:
        _check_form(faults, at, name, form=VARIABLE, told=A_VARIABLE, most=MOST_VARIABLE_NAME)
        if len(value) > MOST_VARIABLE_VALUE:
            faults.add(f"{at}[{shown(name)}]", f"is longer than {MOST_VARIABLE_VALUE:,} characters")
        if "\0" in value:
            faults.add(f"{at}[{shown(name)}]", "holds a NUL character")


def check_script(faults: Faults, at: str, script: str) -> None:
    """A shell script."""
    if len(script) > MOST_SCRIPT:
        faults.add(at, f"is longer than {MOST_SCRIPT:,} characters")
    if "\0" in script:
        faults.add(at, "holds a NUL character")


def check_path(faults: Faults, at: str, path: str) -> None:
    """A path pattern; empty means the default."""
    check_text(faults, at, path, most=MOST_PATH)


def check_text(faults: Faults, at: str, text: str, *, most: int) -> None:
    """One line of printable text."""
    if len(text) > most:
        faults.add(at, f"is longer than {most:,} characters")
    if CONTROL.search(text):
        faults.add(at, "holds a control character")


def _check_form(
    faults: Faults, at: str, text: str, *, form: re.Pattern[str], told: str, most: int
) -> None:
    if len(text) > most:
        faults.add(at, f"is longer than {most:,} characters")
    elif not form.fullmatch(text):
        faults.add(at, f"{shown(text)} is not allowed; it has {told}")
