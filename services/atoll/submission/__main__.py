"""`python -m atoll.submission`: the submission service."""

import sys

from atoll.submission.wiring import main

if __name__ == "__main__":
    sys.exit(main())
