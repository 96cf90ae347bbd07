"""What a wrong site file is answered with."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from site_configs import references_file, settings
from site_configs.entries import SiteError
from site_configs.references_file import check_references
from site_configs.site_file import read_site

PROJECT = Path(__file__).resolve().parents[2]
GOOD = (PROJECT / "site_configs/virtual/site.yaml").read_text()
REFERENCES = (PROJECT / "site_configs/local/references.yaml").read_text()


def line_of(text: str, begin: str) -> int:
    return next(n for n, line in enumerate(text.splitlines(), 1) if line.startswith(begin))


def refusal(root: Path, text: str) -> str:
    path = root / "site.yaml"
    path.write_text(text)
    with pytest.raises(SiteError) as refused:
        read_site(path, root)
    return str(refused.value)


@pytest.mark.parametrize("name", settings.NAMES)
def test_the_sites_in_the_repository_are_right(name: str) -> None:
    assert settings.load_site(name)["nodes"] >= 1


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("partition: compute", "partitoin: compute", "unknown key `partitoin`; did you mean `part"),
        ("cores_per_node: 1", "core_per_node: 1", "unknown key `core_per_node`; did you mean `cor"),
        ("cores_per_node: 1", "cores_per_node: 0", "`cores_per_node` must be a whole number of"),
        ("cores_per_node: 1", "cores_per_node: 1.5", "not 1.5"),
        ("cores_per_node: 1", "cores_per_node: yes", "not True"),
        ("nodes: 4", "nodes: 0", "`nodes` must be a whole number of at least 1, not 0"),
        ("nodes: 4", "nodes: detect", "`nodes` must be a whole number of at least 1, not detect"),
        ("nodes: 4", "nodes: 4\nnodes: 5", "the key `nodes` is already in line"),
        (
            "hpl_memory_share: 0.3",
            "hpl_memory_share: 0",
            "must be a fraction above 0 and at most 1",
        ),
        ("hpl_memory_share: 0.3", "hpl_memory_share: 1.01", "not 1.01"),
        ("nodes: 4", "nodes: 4\nfabric: memory", "`fabric` must name devices where `nodes` is 4"),
        ("nodes: 4", "nodes: 1\nfabric: [eth0]", "`fabric` must be `memory` where `nodes` is 1"),
        ("nodes: 4", "nodes: 4\nfabric: [eth/0]", "`fabric` must be `memory`, or a list of net"),
        ("nodes: 4", "nodes: 4\nfabric: []", "such as [mlx5_0]"),
        ("launch: srun", "launch: mpirum", "must be one of: mpiexec, srun, mpirun, not mpirum"),
        ("launch: srun", "launch: srun\nlauncher: mpirun", "`launcher` has no use without `launch"),
        ("launch: srun", "launch: srun\nhostfile: true", "`hostfile` has no use without `launch"),
        (
            "launch: srun",
            "launch: srun\nlaunch_options: {mpich: [-v]}",
            "must be a list of options, of `srun`",
        ),
        (
            "launch: srun",
            "launch: mpirun\nlauncher: {lam: mpirun.lam}",
            "or one for each of openmpi, mpich, mvapich, mvapich2, intel-mpi, not",
        ),
        (
            "launch: srun",
            "launch: mpirun\nlauncher: mpirun --x",
            "the name or the path of a launch",
        ),
        ("launch: srun", "launch: mpirun\nlauncher: {}", "the name or the path of a launcher"),
        ("launch: srun", "launch: srun\nlauncher_options: [-v]", "did you mean `launch_options`?"),
        ("launch: srun", "launch: mpiexec", "`nodes` must be 1, not 4, with `launch: mpiexec`"),
        ("scheduler: squeue", "scheduler: squeu", "did you mean `squeue`?"),
        ("scheduler: squeue", "scheduler: pbs", "`launch: srun` needs Slurm, and the scheduler is"),
        ("link_bytes_per_s: 12.5e+6", "link_bytes_per_s: -1", "above 0, or null, not -1"),
        ("link_bytes_per_s: 12.5e+6", "link_bytes_per_s: 12.5e6", "YAML reads 12.5e6 as text"),
        ("link_bytes_per_s: 12.5e+6", "link_bytes_per_s: .inf", "not inf"),
        (
            'hostnames: ["^controller$"]',
            'hostnames: ["("]',
            "must be a list of regular expressions",
        ),
        ("access: [", "access: --partition=compute #", "must be a list of options"),
        ("shared_page_cache: true", "shared_page_cache: 1", "must be true or false, not 1"),
        (
            "spare_init_wait: true",
            "spare_init_wait: no fabric",
            "must be true or false, or `detect`, not",
        ),
        ("partition: compute", "partition: big.mem", "letters, digits, - and _"),
        (
            "nodes: 4",
            "nodes: 4\nmodules: [x/1]",
            "needs the key `modules_system`: one of lmod, tmod4",
        ),
        (
            "nodes: 4",
            "nodes: 4\nmodules_system: tmod",
            "must be one of: lmod, tmod4, envmod, spack",
        ),
        ("nodes: 4", "nodes: 4\nprepare: module load x", "must be a list of commands of a shell"),
        ("nodes: 4", "nodes: [", "not YAML"),
        ("nodes: 4", "nodes: !!python/object:os.system x", "could not determine a constructor"),
    ],
)
def test_a_mistake_has_its_line(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    wrong = GOOD.replace(f"\n{old}", f"\n{new}")
    assert wrong != GOOD
    said = refusal(tmp_path, wrong)
    assert sentence in said and len(said.splitlines()) == 1
    begin = new.splitlines()[-1]
    if (
        "not YAML" not in sentence
        and "with `launch" not in sentence
        and "needs Slurm" not in sentence
    ):
        assert said.startswith(f"site.yaml:{line_of(wrong, begin)}: ")


@pytest.mark.parametrize("key", ["partition", "cores_per_node", "launch", "link_bytes_per_s"])
def test_a_missing_key_is_named(tmp_path: Path, key: str) -> None:
    left = "\n".join(line for line in GOOD.splitlines() if not line.startswith(f"{key}:"))
    assert f"the key `{key}` is missing; it must be " in refusal(tmp_path, left)


def test_a_launcher_of_the_machine_must_be_named(tmp_path: Path) -> None:
    said = refusal(tmp_path, GOOD.replace("launch: srun", "launch: mpirun"))
    assert said.startswith("site.yaml: the key `launcher` is missing, by which `launch: mpirun`")


@pytest.mark.parametrize(
    "more",
    [
        "launcher: mpirun",
        "launcher: /opt/openmpi-5.0/bin/mpirun\nlaunch_options: [--mca, plm, rsh]",
        "launcher: {openmpi: mpirun, mpich: /opt/mpich/bin/mpiexec}\nhostfile: true\n"
        "launch_options: {openmpi: [--mca, plm, rsh]}",
    ],
)
def test_a_launcher_of_the_machine(tmp_path: Path, more: str) -> None:
    path = tmp_path / "site.yaml"
    path.write_text(GOOD.replace("launch: srun", f"launch: mpirun\n{more}"))
    assert read_site(path, tmp_path)["launch"] == "mpirun"


INSTALLATIONS = """
installations:
  openmpi-5.0.10:
    prefix: /opt/wyeast-benchmarks
    family: openmpi
    version: 5.0.10
    pmi: pmix
    environment: {UCX_TLS: "all"}
    prepare: [". /opt/spack/share/spack/setup-env.sh", spack load openmpi]
"""


def test_what_a_site_has_installed(tmp_path: Path) -> None:
    path = tmp_path / "site.yaml"
    path.write_text(GOOD + INSTALLATIONS)
    [(name, entry)] = read_site(path, tmp_path)["installations"].items()
    assert name == "openmpi-5.0.10" and entry["prefix"] == "/opt/wyeast-benchmarks"


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            "    prefix: /opt/wyeast-benchmarks",
            "    perfix: /opt/w",
            "unknown key `perfix` of the i",
        ),
        ("    prefix: /opt/wyeast-benchmarks", "    prefix: opt/w", "`prefix` of the installation"),
        ("    prefix: /opt/wyeast-benchmarks", "    prefix: /opt/a b", "with only letters, digits"),
        ("    family: openmpi", "    family: opnmpi", "did you mean `openmpi`?"),
        (
            "    family: openmpi",
            "    family: lam",
            "openmpi-5.0.10 must be one of: openmpi, mpich,",
        ),
        ("    version: 5.0.10", "    version: 5.0", "must be the MPI's version, as text, not 5.0"),
        ("    pmi: pmix", "    pmi: pmi1", "must be one of: pmix, pmi2, not pmi1"),
        ("    pmi: pmix", "    mpiexec: mpiexec", "of the MPI's own launcher, not mpiexec"),
        ("    prepare: [", "    prepare: module load x #", "must be a list of commands of a shell"),
        ('    environment: {UCX_TLS: "all"}', "    environment: {UCX_TLS: 1}", "with texts as val"),
        ("    pmi: pmix", "    modules: [x]", "unknown key `modules` of the installation"),
        ("  openmpi-5.0.10:", "  openmpi-5.0.10+site:", "it is measured as <name>+site"),
        ("  openmpi-5.0.10:", f"  {'a' * 65}:", "must have a name of at most 64"),
        # What YAML reads as a number would be found by no name.
        ("  openmpi-5.0.10:", "  5.0:", 'must be text: write it in quotation marks, as in "5.0"'),
        ("    prepare: [", r'    prepare: ["a\0", ', "must be a list of commands of a shell"),
        # Another program of that name would be found, or what is left of a launch would not.
        ('    environment: {UCX_TLS: "all"}', "    environment: {PATH: /opt}", "other than PATH"),
        ('    environment: {UCX_TLS: "all"}', "    environment: {WYEAST_LAUNCH: x}", "other than"),
        ('    environment: {UCX_TLS: "all"}', "    environment: {A: b, A: c}", "the key `A` is al"),
    ],
)
def test_a_mistake_in_an_installation_has_its_line(
    tmp_path: Path, old: str, new: str, sentence: str
) -> None:
    wrong = (GOOD + INSTALLATIONS).replace(f"\n{old}", f"\n{new}")
    assert wrong != GOOD + INSTALLATIONS
    said = refusal(tmp_path, wrong)
    # Where the key's name is wrong, another sentence says that it is missing.
    first = said.splitlines()[0]
    assert sentence in first and first.startswith(f"site.yaml:{line_of(wrong, new)}: "), said


@pytest.mark.parametrize("key", ["prefix", "family", "version"])
def test_a_key_that_an_installation_lacks_is_named(tmp_path: Path, key: str) -> None:
    lines = [line for line in INSTALLATIONS.splitlines() if not line.startswith(f"    {key}:")]
    said = refusal(tmp_path, GOOD + "\n".join(lines))
    assert f"the installation openmpi-5.0.10 lacks `{key}`: it must be" in said


def test_an_installation_s_launcher_is_needed_where_nothing_else_starts_ranks(
    tmp_path: Path,
) -> None:
    here = GOOD.replace("launch: srun", "launch: mpiexec").replace("nodes: 4", "nodes: 1")
    said = refusal(tmp_path, here + INSTALLATIONS)
    assert "lacks `mpiexec`, by which `launch: mpiexec` starts ranks: it must be a whole" in said
    said = refusal(tmp_path, GOOD + INSTALLATIONS + "image_policy: signed\n")
    assert "`installations` cannot be measured with `image_policy: signed`" in said


@pytest.mark.parametrize("value", ["[]", "{}", "[openmpi]", "text", "null"])
def test_installations_are_by_their_names(tmp_path: Path, value: str) -> None:
    said = refusal(tmp_path, GOOD + f"installations: {value}\n")
    assert "`installations` must be installations by their names" in said
    assert len(said.splitlines()) == 1


def test_an_installation_is_a_mapping(tmp_path: Path) -> None:
    said = refusal(tmp_path, GOOD + "installations: {openmpi-5.0.10: /opt/w}\n")
    assert "expected `key: value` lines" in said


#: What each launch sets itself -> what the refusal says to do in its place.
OWN_OPTIONS = {
    "[-n, '4']": "each experiment sets its number of ranks",
    "[-np, '4']": "each experiment sets its number of ranks",
    "[--np=4]": "each experiment sets its number of ranks",
    "[-ppn, '2']": "set `nodes` and `cores_per_node`, by which ranks are spread",
    "[--map-by, 'ppr:1:node']": "set `nodes` and `cores_per_node`",
    "['--map-by=node']": "set `nodes` and `cores_per_node`",
    "[--rank-by, slot]": "set `nodes` and `cores_per_node`",
    "[--bind-to, none]": "they are bound to one core each",
    "[-bind-to=core]": "they are bound to one core each",
    "[--hostfile, hosts]": "set `hostfile: true` if the launcher must be told",
    "[-f, hosts]": "set `hostfile: true`",
    "[--host, 'a,b']": "set `hostfile: true`",
    "['--host=a']": "set `hostfile: true`",
    "[--prtemca, rmaps_default_mapping_policy, slot]": "set `nodes` and `cores_per_node`",
    "[--mca, hwloc_base_binding_policy, none]": "they are bound to one core each",
    "[-genv, I_MPI_PIN=0]": "they are bound to one core each",
    "{mpich: [-iface, eth1], openmpi: [--bind-to, none]}": "they are bound to one core each",
}


@pytest.mark.parametrize("options", OWN_OPTIONS)
def test_what_every_launch_sets_itself_is_no_site_s(tmp_path: Path, options: str) -> None:
    more = f"launch: mpirun\nlauncher: mpirun\nlaunch_options: {options}"
    wrong = GOOD.replace("launch: srun", more)
    said = refusal(tmp_path, wrong)
    assert said.startswith(f"site.yaml:{line_of(wrong, 'launch_options')}: `launch_options` must")
    assert OWN_OPTIONS[options] in said and len(said.splitlines()) == 1


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ("-n4", "each experiment sets its number of ranks"),
        ("--ntasks=4", "each experiment sets its number of ranks"),
        ("--ntasks-per-node=2", "set `nodes` and"), ("-N2", "set `nodes` and"),
        ("--mpi=pmix", "each image names the PMI"), ("-wnode1", "choose nodes in `access`"),
    ],
)  # fmt: skip
def test_of_srun_as_well(tmp_path: Path, option: str, sentence: str) -> None:
    wrong = GOOD.replace("launch: srun", f"launch: srun\nlaunch_options: ['{option}']")
    said = refusal(tmp_path, wrong)
    assert f"`launch_options` must not have {option}: {sentence}" in said


@pytest.mark.parametrize(
    "more",
    [
        "launch: srun\nlaunch_options: [--cpu-bind=cores, --distribution=block, -m, block]",
        "launch: mpirun\nlauncher: mpirun\nlaunch_options: [--prtemca, plm, ssh, -x, FINE, "
        "--allow-run-as-root, -iface, eth1, -launcher, rsh, --report-bindings]",
    ],
)
def test_other_options_are_the_site_s(tmp_path: Path, more: str) -> None:
    path = tmp_path / "site.yaml"
    path.write_text(GOOD.replace("launch: srun", more))
    assert read_site(path, tmp_path)["nodes"] == 4


def test_grid_engine_and_flux_get_what_reframe_can_request(tmp_path: Path) -> None:
    mpirun = GOOD.replace("launch: srun", "launch: mpirun\nlauncher: mpirun")
    sge = mpirun.replace("scheduler: squeue", "scheduler: sge")
    assert "`access` must request a parallel environment with whole nodes" in refusal(tmp_path, sge)
    path = tmp_path / "site.yaml"
    path.write_text(sge.replace('["--partition=compute"]', '["-pe mpi {slots}", "-q all.q"]'))
    assert read_site(path, tmp_path)["nodes"] == 4
    flux = mpirun.replace("scheduler: squeue", "scheduler: flux")
    assert "`nodes` must be 1, not 4, with `scheduler: flux`" in refusal(tmp_path, flux)


def test_all_mistakes_are_reported_at_once(tmp_path: Path) -> None:
    wrong = GOOD.replace("nodes: 4", "nodes: 0").replace("launch:", "lunch:")
    assert len(refusal(tmp_path, wrong).splitlines()) == 2


@pytest.mark.parametrize("text", ["", "- a list\n", "words\n"])
def test_what_has_no_keys_is_refused(tmp_path: Path, text: str) -> None:
    assert "site.yaml:1: expected `key: value` lines" in refusal(tmp_path, text)


def test_an_override_is_judged_in_its_own_file(tmp_path: Path) -> None:
    (tmp_path / ".wyeast/cluster").mkdir(parents=True)
    override = tmp_path / ".wyeast/cluster/site.yaml"
    override.write_text("nodes: 2\n")
    (tmp_path / "site.yaml").write_text(GOOD)
    assert read_site(tmp_path / "site.yaml", tmp_path)["nodes"] == 2
    override.write_text("# two\nnodes: two\n")
    assert refusal(tmp_path, GOOD).startswith(".wyeast/cluster/site.yaml:2: `nodes` must be")


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("Linpack:", "Linpak:", "no check is called `Linpak`; did you mean `Linpack`?"),
        ("  local:", "  lokal:", "`lokal` is not this one; use `local`"),
        (
            "[8530000.0, 0.0,",
            "[8530000.0, 0.1,",
            "the lower threshold must be a fraction from -1 to 0",
        ),
        ("[8530000.0, 0.0,", "[8530000.0, -1.1,", "or null, not -1.1"),
        (
            "[0.0001087, null, 0.0,",
            "[0.0001087, null, -0.5,",
            "the upper threshold must be a fraction",
        ),
        ("[8530000.0, 0.0,", "[-8530000.0, 0.0,", "must be a number above 0, not -8530000.0"),
        ("[8530000.0, 0.0,", "[fast, 0.0,", "must be a number above 0, not fast"),
        ('[8530000.0, 0.0, null, "B/s"]', "[8530000.0, 0.0, null]", "must be [value, lower"),
        ('[8530000.0, 0.0, null, "B/s"]', "8530000.0", "must be [value, lower"),
        ('[8530000.0, 0.0, null, "B/s"]', "[8530000.0, 0.0, null, 1]", "the unit must be text"),
        ("$index: [grid]", "$index: grid", "`$index` must be a list"),
    ],
)
def test_a_wrong_reference_has_its_line(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    wrong = REFERENCES.replace(old, new, 1)
    path = tmp_path / "references.yaml"
    path.write_text(wrong)
    with pytest.raises(SiteError) as refused:
        check_references(path, tmp_path, "local", "default")
    said = str(refused.value)
    number = next(n for n, line in enumerate(wrong.splitlines(), 1) if new in line)
    assert said.startswith(f"references.yaml:{number}: ") and sentence in said


def test_a_profiled_experiment_may_have_references(tmp_path: Path) -> None:
    path = tmp_path / "references.yaml"
    path.write_text('ProfileSu3:\n  "*":\n    time: [1.0, null, 0.5, "s"]\n')
    check_references(path, tmp_path, "local", "default")


def test_an_experiment_whose_name_only_begins_as_a_profiled_one_may_have_references(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(references_file, "experiments", lambda: {"ProfileOfPower": None})
    path = tmp_path / "references.yaml"
    path.write_text('ProfileOfPower:\n  "*":\n    time: [1.0, null, 0.5, "s"]\n')
    check_references(path, tmp_path, "local", "default")
    path.write_text(path.read_text().replace("OfPower", "OfEnergy"))
    with pytest.raises(SiteError, match="no check is called `ProfileOfEnergy`"):
        check_references(path, tmp_path, "local", "default")


def run(root: Path, *words: str | Path, site: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(root), "RFM_SYSTEM": site}
    environment |= {"RFM_CONFIG_PATH": str(root / "site_configs"), "WYEAST_ROOT": str(root)}
    return subprocess.run(
        [sys.executable, *words], cwd=root, env=environment, capture_output=True, text=True
    )


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a checkout with a site of its own, `mine`, that has a mistake."""
    for name in (
        "analysis",
        "cluster",
        "containers",
        "inference",
        "literature",
        "records",
        "reframe_checks",
    ):
        (tmp_path / name).symlink_to(PROJECT / name)
    for name in ("campaign", "site_configs"):
        unwanted = shutil.ignore_patterns("__pycache__")
        shutil.copytree(PROJECT / name, tmp_path / name, ignore=unwanted)
    sites = tmp_path / "site_configs"
    (sites / "mine").mkdir()
    (sites / "mine/site.yaml").write_text(GOOD.replace("partition:", "partitoin:"))
    (sites / "mine/references.yaml").write_text("")
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        ["-m", "reframe_checks.bin.guards", "--show-config=systems/0/name"],
        ["-m", "campaign", "--site=mine"],
        ["-m", "campaign.choice", "--site=mine"],
        ["-m", "campaign.site.check", "--site=mine"],
    ],
)
def test_every_entry_answers_in_a_sentence(checkout: Path, words: list[str]) -> None:
    done = run(checkout, *words, site="mine")
    number = line_of((checkout / "site_configs/mine/site.yaml").read_text(), "partitoin")
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert (
        f"site_configs/mine/site.yaml:{number}: unknown key `partitoin`; did you mean"
        in done.stderr
    )


def test_another_sites_mistake_stops_nobody(checkout: Path) -> None:
    done = run(checkout, "-m", "reframe_checks.bin.guards", "--show-config=systems/0/name",
               site="local")  # fmt: skip
    assert done.returncode == 0 and '"local"' in done.stdout
    assert "site mine is left out: " in done.stderr
