"""What tests of studies share: the five reports, evaluated once, and one that nobody wrote."""

from functools import cache
from pathlib import Path

import yaml

from analysis.studies.reading import papers, read_paper
from analysis.studies.relations import TodaysTables
from analysis.studies.verdicts import Evaluated, evaluate
from records.campaign import read_campaign
from tests.analysis.report.conftest import INJECTION
from tests.analysis.support.synthetic import Synthetic, Truth

PROJECT = Path(__file__).resolve().parents[3]
PAPERS = papers(PROJECT)


@cache
def evaluated(name: str) -> list[Evaluated]:
    """Return a report's claims, evaluated by its own tables when a test first asks."""
    return evaluate(read_paper(PROJECT, name))


def named(found: list[Evaluated], name: str) -> Evaluated:
    return next(one for one in found if one.claim.id == name)


# A folder with a table and two files of YAML, and no code.
DEMO_STUDY = {
    "title": "Demo", "source": "nowhere", "summary": "A demonstration.", "site": "local",
    "rounds": 6,
    "stands_for": {
        "A": {"implementations": ["alpha-*"], "image": "alpha-1.0", "because": "it is alpha"},
        "B": {"implementations": ["beta-9", "beta-*"], "because": "it is beta"},
    },
    "experiments": {"hpl": {"check": "Linpack", "choose": "^Linpack", "difference": "none"}},
    "tables": {
        "hpl": {
            "file": "hpl.csv",
            "today": {
                "experiment": "hpl",
                "columns": {"procs": "ranks", "mpi": "mpi", "rate": "rate_flops / 1000000000"},
            },
        },
        "wide": {
            "of": "hpl",
            "steps": [{"side_by_side": {"of": ["rate"], "by": "mpi", "rows": ["procs"]}}],
        },
    },
    "exhibits": [
        {"number": "Table 1", "title": INJECTION, "table": "hpl", "rows": ["procs"],
         "across": "mpi", "values": {"rate": "GFLOPS"},
         "figures": [{"across": "procs", "up": "rate", "lines": ["mpi"], "label": "Figure 1"}]},
    ],
}  # fmt: skip
RATIO = {"of": "wide", "value": "EXP(AVG(LN(A / B)))", "scale": "ratio", "label": "A over B"}
DEMO_CLAIM = {
    "id": "demo-1", "kind": "claim", "source": "Table 1", "claim": f"A is faster {INJECTION}",
    "status": "reproduced", "quantities": {"ratio": RATIO},
    "report": [{"that": "ratio", "above": 1}], "here": [{"that": "ratio", "above": 1}],
}  # fmt: skip
DEMO_TABLE = "procs,mpi,rate\n1,A,2.0\n1,B,1.0\n2,A,8.0\n2,B,4.0\n"


def demo(root: Path, study: object = DEMO_STUDY, claim: object = DEMO_CLAIM) -> Path:
    folder = root / "literature" / "demo"
    folder.mkdir(parents=True)
    (folder / "hpl.csv").write_text(DEMO_TABLE)
    (folder / "study.yaml").write_text(yaml.safe_dump(study))
    (folder / "claims.yaml").write_text(yaml.safe_dump({"claims": [claim]}))
    return root


def measured(root: Path, tmp_path: Path, faster: float, rounds: int = 6, noise: float = 0.02,
             names: tuple[str, str] = ("alpha-1.0", "beta-2.0")) -> TodaysTables:  # fmt: skip
    """Return a campaign in which the first implementation's HPL is faster by a known factor."""
    truths = {
        names[0]: Truth(latency=1e-6, bandwidth=4e9, linpack=30e9 * faster),
        names[1]: Truth(latency=1e-6, bandwidth=4e9, linpack=30e9),
    }
    folder = tmp_path / "campaign"
    Synthetic(folder, truths, rounds=rounds, noise=noise, pairs=["Send/Recv"]).write()
    return TodaysTables(read_paper(root, "demo"), read_campaign(folder))
