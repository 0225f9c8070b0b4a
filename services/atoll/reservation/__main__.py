"""`python -m atoll.reservation`: one replica of the reservation service."""

import sys

from atoll.reservation.wiring import main

if __name__ == "__main__":
    sys.exit(main())
