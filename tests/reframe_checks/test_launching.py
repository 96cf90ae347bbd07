"""How ranks start: the image's labels and the site's data decide."""

import pytest

from containers.labels import Labels
from reframe_checks.mixins.launching import CannotStart, Placement, start_ranks

LABELS = {
    "org.wyeast.implementation": "mpich-5.0.2",
    "org.wyeast.pmi": "pmi2",
    "org.wyeast.mpiexec": "mpiexec",
    "org.wyeast.mpiexec.pinned": "-bind-to core",
    "org.wyeast.mpiexec.oversubscribed": "-bind-to none",
}
LAM = {
    **LABELS,
    "org.wyeast.implementation": "lam-7.1.4",
    "org.wyeast.pmi": "daemons",
    "org.wyeast.mpiexec": "lam_ranks",
    "org.wyeast.mpiexec.pinned": "--pinned",
    "org.wyeast.mpiexec.oversubscribed": "",
    "org.wyeast.variant.lamd": "LAM_MPI_SSI_rpi=lamd",
}
LOCAL = {"name": "local", "launch": "mpiexec", "cores_per_node": 2}
SLURM = {"name": "cluster", "launch": "srun", "cores_per_node": 1}


def of(words: dict[str, str]) -> Labels:
    return Labels.of(words, "an image")


@pytest.mark.parametrize(("ranks", "option"), [(2, "core"), (3, "none")])
def test_mpiexec_binds_where_the_cores_suffice(ranks: int, option: str) -> None:
    start = start_ranks(of(LABELS), LOCAL, Placement(ranks, 1), ["program", "--sizes", "1:2"])
    assert start.launcher == [] and start.container == []
    assert start.command == f"mpiexec -bind-to {option} -n {ranks} program --sizes 1:2"


@pytest.mark.parametrize("pmi", ["pmi2", "pmix"])
def test_srun_starts_a_container_a_rank(pmi: str) -> None:
    site = {**SLURM, "launch_options": ["--cpu-bind=cores"]}
    start = start_ranks(
        of({**LABELS, "org.wyeast.pmi": pmi}), site, Placement(4, 2), ["program", "a b"]
    )
    assert start.launcher == [
        "--kill-on-bad-exit=1", "--cpu-bind=cores", f"--mpi={pmi}"
    ]  # fmt: skip
    assert start.command == "program 'a b'"
    # Two containers of a node have one user namespace; one alone needs none.
    assert start.together
    assert not start_ranks(of(LABELS), site, Placement(2, 2), ["program"]).together


def test_daemons_get_one_container_a_node() -> None:
    start = start_ranks(of(LAM), SLURM, Placement(4, 2), ["program"], "lamd")
    assert {"--ntasks=2", "--ntasks-per-node=1", "--mpi=none"} <= set(start.launcher)
    assert start.container == ["--env=LAM_MPI_SSI_rpi=lamd"]
    assert start.command == "lam_ranks -n 4 program" and not start.together


def test_a_wait_of_mpi_init_is_spared_where_the_site_says_so_and_not_where_it_is_measured() -> None:
    labels = of({**LAM, "org.wyeast.init_wait": "OMPI_MCA_btl=^ofi"})
    world = Placement(4, 2)
    spared = {**SLURM, "spare_init_wait": True}
    start = start_ranks(labels, spared, world, ["program"], "lamd")
    # A variant's own variables come last, and so prevail.
    assert start.container == ["--env=OMPI_MCA_btl=^ofi", "--env=LAM_MPI_SSI_rpi=lamd"]
    for site, init_wait in ((spared, True), (SLURM, False)):
        start = start_ranks(labels, site, world, ["program"], init_wait=init_wait)
        assert start.container == []
    assert start_ranks(of(LAM), spared, world, ["program"]).container == []


def test_what_cannot_start_says_why() -> None:
    with pytest.raises(CannotStart, match="launch: ssh is unknown"):
        start_ranks(of(LABELS), {**LOCAL, "launch": "ssh"}, Placement(2, 1), ["program"])
    with pytest.raises(CannotStart, match=r"no label 'org\.wyeast\.pmi'"):
        start_ranks(of({}), SLURM, Placement(2, 2), ["program"])
    with pytest.raises(CannotStart, match="no variant `tcp`"):
        start_ranks(of(LAM), SLURM, Placement(2, 2), ["program"], "tcp")
