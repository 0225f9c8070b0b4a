"""`python -m atoll.dispatch`: one replica of the dispatch service."""

import sys

from atoll.dispatch.wiring import main

if __name__ == "__main__":
    sys.exit(main())
