"""What can go wrong with a server, in words for its operator."""


class ServerError(Exception):
    """A server could not be found, started or signalled; the message says why and what to do."""
