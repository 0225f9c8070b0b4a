"""A service as the supervisor sees one: a process with /readyz, well-behaved or not.

`fake_service.py PORT WITNESS [MODE]`; it writes `begun` and `ended` lines to WITNESS.
"""

import os
import signal
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path


class Ready(BaseHTTPRequestHandler):
    status = 200

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        return


def main() -> None:
    port, witness, mode = int(sys.argv[1]), Path(sys.argv[2]), (*sys.argv[3:], "good")[0]
    name = f"{port} {os.getpid()}"
    tell(witness, f"begun {name}")
    match mode:
        case "broken":
            sys.exit("the reason why it is broken")
        case "never-ready":
            Ready.status = 503
        case "leaves-child":
            leave_child(witness)
        case _:
            pass
    server = HTTPServer(("127.0.0.1", port), Ready)

    def end(*_: object) -> None:
        if mode != "hangs":
            tell(witness, f"ended {name}")
            threading.Thread(target=server.shutdown).start()

    signal.signal(signal.SIGTERM, end)
    server.serve_forever()


def leave_child(witness: Path) -> None:
    """A grandchild in a session of its own whose parent ends: it is nobody's child."""
    script = "(trap '' TERM; echo left $BASHPID >>$0; exec sleep 600) &"
    subprocess.run(["bash", "-c", script, str(witness)], check=True, start_new_session=True)


def tell(witness: Path, line: str) -> None:
    with witness.open("a") as file:
        file.write(f"{line}\n")


if __name__ == "__main__":
    main()
