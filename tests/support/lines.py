"""Reading a file that somebody may be writing to."""

from pathlib import Path


def whole_lines(path: Path) -> list[str]:
    """Its lines so far, none when it is not there; the last one may not be whole yet."""
    text = path.read_text() if path.exists() else ""
    return text[: text.rfind("\n") + 1].splitlines()
