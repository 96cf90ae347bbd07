"""What the tests of travelling images share: small checkouts and images, keys, a registry."""

import math
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from containers import build, images, origin, sources, store
from containers.apptainer import apptainer_command, call

PROJECT = Path(__file__).resolve().parents[2]
NAME = "mpich-5.0.2"
PASSWORD = "only-for-this-test"
#: An address of RFC 1918, which a namespace of the network's own gets.
PRIVATE = "10.77.0.1"


def new_checkout(root: Path) -> Path:
    """A checkout with everything that decides what an image is made of, and no image."""
    root.mkdir(parents=True)
    without = shutil.ignore_patterns("*.pyc", "images.lock", "build", "*.asc")
    for folder in ("containers", "benchmarks"):
        shutil.copytree(PROJECT / folder, root / folder, ignore=without)
    return root


def new_sif(folder: Path, name: str) -> Path:
    """A SIF file of some megabytes that says it is of an implementation."""
    content = folder / f"{name}-content"
    (content / ".singularity.d").mkdir(parents=True)
    (content / "random").write_bytes(os.urandom(3_000_000))
    (content / ".singularity.d" / "labels.json").write_text(
        f'{{"org.wyeast.implementation": "{name}"}}'
    )
    path = folder / f"{name}.sif"
    call("build", "--fakeroot", path, content)
    return path


def place(root: Path, sif: Path) -> Path:
    """Put an image into a checkout as if it were built there."""
    name = sif.stem
    target = store.folder(root) / sif.name
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(sif, target)
    lock_again(root, name)
    return target


def lock_again(root: Path, name: str) -> None:
    """Have images.lock say what the image is now."""
    path = store.folder(root) / f"{name}.sif"
    images.write_entry(root, name, {
        "file": path.name, "sha256": sources.sha256_of(path), "bytes": path.stat().st_size,
        "inputs_sha256": build.recipe_of(root, name, "mmdebstrap").inputs_sha256(),
        "built_utc": "2026-01-01T00:00:00Z", "labels": images.labels_inside(path),
        "origin": origin.BUILT,
    })  # fmt: skip


def environment(root: Path, **more: str) -> dict[str, str]:
    """The variables for a command in a checkout; nothing of the user's own is seen."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("APPTAINER_", "SSL_"))}
    return {
        **kept,
        "WYEAST_ROOT": str(root),
        "PYTHONPATH": str(PROJECT),
        "PATH": f"{apptainer_command().parent}:{os.environ['PATH']}",
        "HOME": str(root),
        **more,
    }


def run(root: Path, module: str, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", f"containers.{module}", *arguments],
        env=environment(root, **more), capture_output=True, text=True,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


def make(*command: str, stdin: str | None = None) -> str:
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=True).stdout


@dataclass(frozen=True)
class Registry:
    """A registry on loopback, and what a client needs for it."""

    folder: Path
    port: int

    def address(self, port: int | None = None) -> str:
        return f"oras://localhost:{port or self.port}/site/images"

    def access(self) -> dict[str, Any]:
        return {
            "SSL_CERT_FILE": str(self.folder / "ca.crt"),
            "APPTAINER_DOCKER_USERNAME": "user",
            "APPTAINER_DOCKER_PASSWORD": PASSWORD,
        }


def free_port() -> int:
    """A port that no one listens at, and that Linux gives to nobody who asks for any.

    Else another test could have it before the program does that it is for.
    """
    first_given, _ = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
    for _ in range(1000):
        port = random.randrange(int(first_given) // 2, int(first_given))
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise OSError("no port is free")


def make_certificates(folder: Path) -> None:
    """A certificate authority, and a certificate of it for localhost and a private address."""
    new = ["openssl", "req", "-newkey", "rsa:2048", "-nodes"]
    ca = ["-keyout", f"{folder}/ca.key", "-out", f"{folder}/ca.crt"]
    make(*new, "-x509", "-days", "2", "-subj", "/CN=a site's own authority", *ca)
    make(*new, "-subj", "/CN=localhost", "-keyout", f"{folder}/key", "-out", f"{folder}/request")
    (folder / "extensions").write_text(f"subjectAltName=DNS:localhost,IP:{PRIVATE}")
    make("openssl", "x509", "-req", "-in", f"{folder}/request", "-CA", f"{folder}/ca.crt",
         "-CAkey", f"{folder}/ca.key", "-CAcreateserial", "-days", "2",
         "-extfile", f"{folder}/extensions", "-out", f"{folder}/crt")  # fmt: skip


@contextmanager
def served(folder: Path) -> Iterator[Registry]:
    """A registry with TLS and a password, until the end."""
    folder.mkdir()
    make_certificates(folder)
    # The registry takes bcrypt only, and Perl is on every Debian.
    code = 'print crypt(shift, q($2y$05$) . "abcdefghijklmnopqrstuu")'
    (folder / "passwords").write_text(f"user:{make('perl', '-e', code, PASSWORD)}\n")
    found = Registry(folder, free_port())
    secured = (
        f", tls: {{certificate: {folder}/crt, key: {folder}/key}}}}\n"
        f"auth: {{htpasswd: {{realm: test, path: {folder}/passwords}}}}\n"
    )
    with running(folder, found.port, secured):
        yield found


@contextmanager
def plainly_served(folder: Path) -> Iterator[int]:
    """A registry on loopback that anybody may use, until the end; gives its port."""
    folder.mkdir()
    port = free_port()
    with running(folder, port, "}\n"):
        yield port


@contextmanager
def running(folder: Path, port: int, rest: str) -> Iterator[None]:
    """The registry's server, whose configuration ends with `rest`."""
    (folder / "config.yml").write_text(
        "version: 0.1\n"
        "log: {level: warn, accesslog: {disabled: true}}\n"
        f"storage: {{filesystem: {{rootdirectory: {folder}/store}}}}\n"
        f"http: {{addr: '127.0.0.1:{port}'{rest}"
    )
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            ["docker-registry", "serve", folder / "config.yml"], stdout=log, stderr=log
        )
    try:
        for _ in range(600):
            assert server.poll() is None, (folder / "log").read_text()
            with suppress(OSError):
                socket.create_connection(("127.0.0.1", port)).close()
                break
            time.sleep(0.1)
        yield
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()


def listener_at(process: int) -> socket.socket:
    """A listener on loopback of the network that a process is in: a socket stays where it was made.

    Whoever has it can accept here what is asked there.
    """
    ours, theirs = socket.socketpair()
    code = (
        "import socket, sys; listener = socket.create_server(('127.0.0.1', 0)); "
        "way = socket.socket(fileno=int(sys.argv[1])); "
        "socket.send_fds(way, [b'.'], [listener.fileno()])"
    )
    with ours, theirs:
        number = theirs.fileno()
        subprocess.run(
            ["nsenter", f"--net=/proc/{process}/ns/net", sys.executable, "-c", code, str(number)],
            pass_fds=[number], check=True,
        )  # fmt: skip
        _, [listener], _, _ = socket.recv_fds(ours, 1, 1)
    return socket.socket(fileno=listener)


@contextmanager
def narrow_way(
    port: int,
    most_bytes: float = math.inf,
    then_cut: bool = True,
    listener: socket.socket | None = None,
) -> Iterator[tuple[int, threading.Event]]:
    """A way to a port that passes so many bytes back, and then is cut, or stands still.

    Gives its own port, and an event that is set when it came to that. It begins on loopback, or
    where `listener` is.
    """
    door = listener or socket.create_server(("127.0.0.1", 0))
    reached, end = threading.Event(), threading.Event()
    passed = 0

    def there(client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(65536):
                server.sendall(data)

    def back(client: socket.socket, server: socket.socket) -> None:
        nonlocal passed
        with suppress(OSError):
            while data := server.recv(65536):
                passed += len(data)
                if passed > most_bytes:
                    reached.set()
                    if not then_cut:
                        end.wait()
                    break
                client.sendall(data)
        for one in (client, server):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def accept() -> None:
        with suppress(OSError):
            while True:
                client, _ = door.accept()
                server = socket.create_connection(("127.0.0.1", port))
                for way in (there, back):
                    threading.Thread(target=way, args=(client, server), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield int(door.getsockname()[1]), reached
    finally:
        end.set()
        door.close()
