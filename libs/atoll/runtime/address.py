"""Addresses to listen on and to dial."""

import ipaddress
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Address:
    """`HOST:PORT`; an IPv6 host stands in brackets when written."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Read `HOST:PORT`; raises ValueError with what would be right."""
        host, colon, port = text.strip().rpartition(":")
        if not (colon and host and port.isascii() and port.isdigit() and int(port) < 1 << 16):
            raise ValueError(f"{text!r} is not HOST:PORT, such as 127.0.0.1:7000 or [::1]:7000")
        return cls(host.removeprefix("[").removesuffix("]"), int(port))

    @property
    def loopback(self) -> bool:
        """True when only this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def unspecified(self) -> bool:
        """True for `0.0.0.0` and `[::]`: one can listen there, but nobody can dial it."""
        try:
            return ipaddress.ip_address(self.host).is_unspecified
        except ValueError:
            return False

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def checked_address(text: str) -> str:
    """The address in its usual form; raises ValueError."""
    return str(Address.parse(text))
