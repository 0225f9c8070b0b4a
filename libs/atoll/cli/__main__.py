"""`python -m atoll.cli`."""

from atoll.cli.main import main

if __name__ == "__main__":
    main()
