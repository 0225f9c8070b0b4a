"""The image's entry point."""

import sys

from atoll.runtime.roles.choice import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
