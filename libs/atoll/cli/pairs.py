"""KEY=VALUE on the command line."""

from collections.abc import Iterable

from atoll.cli.failures import WrongUse


def labels_of(words: Iterable[str], option: str) -> dict[str, str]:
    """The pairs; the last one of a key wins. WrongUse for a word that is none."""
    pairs = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise WrongUse(f"--{option} `{word}`: write KEY=VALUE")
        pairs[key] = value
    return pairs
