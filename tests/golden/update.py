"""Writes every case anew: `python -m tests.golden.update`; then read the diff."""

from pathlib import Path

from tests.golden.language import answer

CASES = Path(__file__).parent / "cases"


def main() -> None:
    for path in sorted(CASES.glob("*.txt")):
        text = path.read_text()
        asked = text.partition("\n---\n")[0].rstrip()
        path.write_text(f"{asked}\n---\n{answer(text)}")


if __name__ == "__main__":
    main()
