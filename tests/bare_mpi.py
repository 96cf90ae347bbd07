"""An MPI's wheel installed outside any image, for programs built by hand."""

import fcntl
import json
import platform
import subprocess
import sys
from pathlib import Path


def install(project: Path, implementation: str) -> Path:
    """Return the prefix of an implementation, installed from the wheel that sources.lock pins."""
    prefix = project / ".wyeast" / "bare" / implementation
    prefix.parent.mkdir(parents=True, exist_ok=True)
    with (prefix.parent / f"{implementation}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (prefix / "installed").exists():
            return prefix
        wheel = json.loads((project / "containers/sources.lock").read_text())["wheels"][
            implementation
        ]
        subprocess.run([sys.executable, "-m", "venv", "--clear", prefix], check=True)
        pinned = prefix / "pinned.txt"
        digest = wheel["files"][platform.machine()]["sha256"]
        pinned.write_text(f"{wheel['name']}=={wheel['version']} --hash=sha256:{digest}\n")
        subprocess.run(
            [prefix / "bin/python", "-m", "pip", "install", "-q", "--require-hashes", "-r", pinned],
            check=True,
        )
        (prefix / "installed").touch()
    return prefix
