"""`python -m atoll.placement`: one replica of the placement service."""

import sys

from atoll.placement.wiring import main

if __name__ == "__main__":
    sys.exit(main())
