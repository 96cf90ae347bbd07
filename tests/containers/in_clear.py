"""Pulls from a registry at a private address: `python -m tests.containers.in_clear FOLDER`.

It is run in a namespace of its own, where that address is; it prints, for each way of asking, how
the pull ended and how many requests came in clear.
"""

import json
import os
import shutil
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from containers import images
from containers.apptainer import call
from containers.sources import sha256_of
from tests.containers import travelling
from tests.containers.travelling import NAME, PRIVATE

#: Apptainer's library takes all of them for hosts that need no TLS.
HOSTS = [PRIVATE, "registry.local", "x127.0.0.1.example.org"]


@contextmanager
def counted(port: int) -> Iterator[tuple[int, list[bytes]]]:
    """A way from the private address to a port on loopback; gives each client's first byte."""
    door = socket.create_server((PRIVATE, 0))
    first: list[bytes] = []

    def pump(one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(65536):
                other.sendall(data)
        with suppress(OSError):
            other.shutdown(socket.SHUT_WR)

    def accept() -> None:
        with suppress(OSError):
            while True:
                client, _ = door.accept()
                first.append(client.recv(1, socket.MSG_PEEK))
                server = socket.create_connection(("127.0.0.1", port))
                for way in ((client, server), (server, client)):
                    threading.Thread(target=pump, args=way, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield int(door.getsockname()[1]), first
    door.close()


def pulled(folder: Path, host: str, port: int, *more: str, **access: str) -> dict[str, object]:
    """Pull by a lock's file into a new checkout; return how it ended."""
    root = folder / "checkout"
    (root / "containers" / "trust").mkdir(parents=True)
    words = ["pull", "--registry", f"oras://{host}:{port}/x", "--lock", str(folder / "lock"), *more]
    done = travelling.run(root, "sharing.registry", *words, **access)
    entry = images.load_lock(root)["images"].get(NAME)
    shutil.rmtree(root)
    return {"code": done.returncode, "said": done.stderr, "entry": entry}


def main() -> None:
    """Print the outcomes as JSON."""
    folder = Path(sys.argv[1])
    sif = folder / f"{NAME}.sif"
    digest = sha256_of(sif)
    entry = {
        "file": sif.name, "sha256": digest, "bytes": sif.stat().st_size,
        "inputs_sha256": "0" * 64, "built_utc": "2026-01-01T00:00:00Z",
        "labels": images.labels_inside(sif),
    }  # fmt: skip
    lock = {"schema": images.SCHEMA, "images": {NAME: entry}}
    (folder / "lock").write_text(json.dumps(lock))
    outcomes = {}
    with travelling.plainly_served(folder / "plain") as port, counted(port) as (way, first):
        call("push", "--no-https", sif, f"oras://localhost:{port}/x/{NAME}:{digest}")
        for host in HOSTS:
            first.clear()
            outcomes[host] = pulled(folder, host, way) | {"clear": clear(first)}
        # The caller's own variables do not open it again.
        first.clear()
        own = {"NO_PROXY": "*", "APPTAINER_NOHTTPS": "1"}
        outcomes["variables"] = pulled(folder, PRIVATE, way, **own) | {"clear": clear(first)}
        first.clear()
        outcomes["insecure"] = pulled(folder, PRIVATE, way, "--insecure") | {"clear": clear(first)}
        outcomes["loopback"] = pulled(folder, "localhost", port)
    with travelling.served(folder / "secured") as registry, counted(registry.port) as (way, first):
        access = registry.access()
        call("push", sif, f"oras://localhost:{registry.port}/x/{NAME}:{digest}", **access)
        outcomes["tls"] = pulled(folder, PRIVATE, way, **access) | {"clear": clear(first)}
    print(json.dumps(outcomes))


def clear(first: list[bytes]) -> int:
    """Return how many clients began with anything but a handshake of TLS."""
    return sum(byte != b"\x16" for byte in first)


if __name__ == "__main__":
    os.environ.pop("SSL_CERT_FILE", None)
    main()
