"""`python -m atoll.agent`: the agent of one cluster as a process."""

import sys

from atoll.agent.wiring import main

if __name__ == "__main__":
    sys.exit(main())
