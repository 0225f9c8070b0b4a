"""`python -m atoll.burst`: one replica of the burst service."""

import sys

from atoll.burst.wiring import main

if __name__ == "__main__":
    sys.exit(main())
