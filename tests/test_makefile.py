"""What targets of the Makefile leave alone."""

import subprocess
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]


def test_cleaning_up_keeps_what_nothing_could_make_again(tmp_path: Path) -> None:
    """Keys to sign with and bundles stay, and so do campaigns; all else goes, hidden or not."""
    kept = {".wyeast/trust/pgp-secret", ".wyeast/bundles/a.tar.gz", "runs/a/manifest.json"}
    gone = {".wyeast/venv/bin/python", ".wyeast/.hidden", ".wyeast/images/a.sif",
            "benchmarks/build/a.o", ".wyeast/other/trust/x"}  # fmt: skip
    command = ["make", "-s", "-f", str(PROJECT / "Makefile"), "clean"]
    for name in kept | gone:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    for _ in range(2):
        subprocess.run(command, cwd=tmp_path, check=True)
        found = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
        assert found == kept
    assert {path.name for path in (tmp_path / ".wyeast").iterdir()} == {"trust", "bundles"}
    (tmp_path / "empty").mkdir()
    subprocess.run(command, cwd=tmp_path / "empty", check=True)
