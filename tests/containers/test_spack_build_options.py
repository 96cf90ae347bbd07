"""Builds of one MPI with other options: entries of the table, and what spack.yaml has of them."""

from pathlib import Path

import pytest
import yaml

from containers import bases, table
from containers import labels as image_labels
from containers.sources import Sources, load_sources
from containers.spack import build_options, lock
from containers.spack import environment as spack_environment
from containers.spack import tool as spack
from containers.spack.recipes import SpackError
from containers.table import load_table
from tests.containers.test_spack import DATA, NAMES, OPTIONS, PROJECT, chosen
from tests.containers.test_table import TEXT, changed

OF, OWN = "openmpi-4.1.4-source-spack", "openmpi-4.1.4-source-knem-spack"
DEFINED = spack_environment.environment_names(PROJECT)
SPECIFICATION = build_options.with_options(DEFINED[OF], "fabrics=knem")
#: The project's table, in which one entry asks for another build.
KNOWN = table.parse_table(changed(**{
    OF: {**yaml.safe_load(TEXT)["implementations"][OF], "options": {"knem": "fabrics=knem"}}
}))  # fmt: skip


@pytest.mark.parametrize(
    ("specification", "options", "made"),
    [
        ("a@=1 fabrics=none ~romio", "fabrics=cma", "a@=1 fabrics=cma ~romio"),
        ("a@=1 fabrics=none ~romio", "+romio x=1", "a@=1 fabrics=none +romio x=1"),
        ("a@=1", "~static", "a@=1 ~static"),
    ],
)
def test_an_option_takes_the_place_of_its_like(specification: str, options: str, made: str) -> None:
    assert build_options.with_options(specification, options) == made


def test_an_entry_s_options_are_implementations_of_their_own() -> None:
    of, own = KNOWN.resolve(OF), KNOWN.resolve(OWN)
    assert own.labels()["org.wyeast.build_options"] == "fabrics=knem"
    assert own.labels()["org.wyeast.implementation"] == OWN
    assert image_labels.checked(own.labels(), "x") == own.labels()
    assert "org.wyeast.build_options" not in of.labels()
    # They are one but for their names; images from before there were options stay what they are.
    assert {**own.model_dump(), "name": OF} == of.model_dump()
    of_options = {"build_option", "build_options", "build_of", "without", "programs"}
    assert not of_options & of.model_dump().keys()
    assert KNOWN.built_by("spack").index(OWN) == KNOWN.built_by("spack").index(OF) + 1
    assert KNOWN.choose(f"{OF},{OWN}") == [OF, OWN]


#: An option of what is built with, and not of the MPI, whose build may be the distribution's.
LIBRARY = {
    "packages": {"build": ["pvm-dev"], "run": ["libpvm3"]},
    "without": ["libopenblas-serial-dev", "libopenblas0-serial"],
}


@pytest.mark.parametrize("of", [OF, "mpich-4.0.2-spack"])
def test_an_option_may_be_what_the_bases_have(of: str) -> None:
    entry = yaml.safe_load(TEXT)["implementations"][of]
    known = table.parse_table(changed(**{of: {**entry, "options": {"library": LIBRARY}}}))
    pinned, name = load_sources(PROJECT), f"{of.removesuffix('-spack')}-library-spack"
    plain, own = known.resolve(of), known.resolve(name)
    assert own.labels()["org.wyeast.build_options"] == "library"
    assert build_options.wanted(known, DEFINED, name) == DEFINED[of]
    assert name not in spack_environment.of_the_distribution(known)
    for stage, added, gone in (
        (0, "pvm-dev", "libopenblas-serial-dev"),
        (1, "libpvm3", "libopenblas0-serial"),
    ):
        before, after = (
            bases.bases_of(PROJECT, known, one, pinned, "mmdebstrap")[stage] for one in (plain, own)
        )
        version = f"{added}={pinned.package_version(added)}"
        assert {*after.packages} == {*before.packages, version} - {gone}
        # Making one base removes older ones of its name: each needs a name of its own.
        assert before.name != after.name


#: Programs of others, which no build of the same entry has but that one.
SUITE, WITH_SUITE = "npb@=3.4.3 names=cg,ep classes=S,W", "openmpi-4.1.4-source-own-spack"
OTHER_SUITE = "intel-mpi-benchmarks@=2021.7 +mpi1 ~ext"


def with_programs(*programs: str) -> table.ImplementationTable:
    """The project's table, with a build that has some programs besides."""
    entry = yaml.safe_load(TEXT)["implementations"][OF]
    # Without programs, too, it says something: a package of no image.
    option = {"programs": list(programs), "packages": {"build": ["libpvm3"]}}
    return table.parse_table(changed(**{OF: {**entry, "options": {"own": option}}}))


def programs_in(path: Path, name: str) -> list[str]:
    return chosen(name, "programs", yaml.safe_load(path.read_text())["spack"])


def test_an_option_may_be_programs_of_others() -> None:
    entry = yaml.safe_load(TEXT)["implementations"][OF]
    known = table.parse_table(changed(**{
        OF: {**entry, "options": {"own": {"programs": [SUITE, OTHER_SUITE]}}}
    }))  # fmt: skip
    of, own = known.resolve(OF), known.resolve(WITH_SUITE)
    assert (of.programs, own.programs) == ([], [SUITE, OTHER_SUITE])
    assert own.labels()["org.wyeast.build_options"] == "own"
    # The MPI and the bases are the same, so that what was built of it is used.
    assert build_options.wanted(known, DEFINED, WITH_SUITE) == DEFINED[OF]
    pinned = load_sources(PROJECT)
    one, other = (bases.bases_of(PROJECT, known, each, pinned, "mmdebstrap") for each in (of, own))
    assert one == other


def test_spack_yaml_is_given_the_programs_that_the_table_asks_for(tmp_path: Path) -> None:
    path = checkout(tmp_path) / "spack.yaml"
    common = programs_in(path, OF)
    others = {name: programs_in(path, name) for name in NAMES}
    assert build_options.define(tmp_path, with_programs(SUITE, OTHER_SUITE), WITH_SUITE)
    assert programs_in(path, WITH_SUITE) == [SUITE, OTHER_SUITE, *common]
    assert {name: programs_in(path, name) for name in NAMES} == others
    assert spack_environment.environment_names(tmp_path)[WITH_SUITE] == DEFINED[OF]
    made = path.read_text()
    assert not build_options.define(tmp_path, with_programs(SUITE, OTHER_SUITE), WITH_SUITE)
    # The table says something else now, and the first again.
    assert build_options.define(tmp_path, with_programs(OTHER_SUITE), WITH_SUITE)
    assert programs_in(path, WITH_SUITE) == [OTHER_SUITE, *common]
    assert build_options.define(tmp_path, with_programs(), WITH_SUITE)
    assert programs_in(path, WITH_SUITE) == common
    assert build_options.define(tmp_path, with_programs(SUITE, OTHER_SUITE), WITH_SUITE)
    assert path.read_text() == made


@pytest.mark.parametrize(
    "own",
    [
        f"  - programs: ['{SUITE}']\n",
        f"  - programs:\n    # NASA's.\n    - {SUITE}\n",
        f"  - programs:\n    - {SUITE}\n\n",
        f"  - programs:\n      - {SUITE}\n",
    ],
)
@pytest.mark.parametrize("programs", [(), (SUITE,), (OTHER_SUITE,)])
def test_programs_that_spack_yaml_has_in_other_lines_are_not_defined_twice(
    tmp_path: Path, own: str, programs: tuple[str, ...]
) -> None:
    path = checkout(tmp_path) / "spack.yaml"
    build_options.define(tmp_path, with_programs(), WITH_SUITE)
    when = f'    when: env.get("WYEAST_IMPLEMENTATION", "") == "{WITH_SUITE}"\n'
    path.write_text(path.read_text().replace(when, f"{when}{own}{when}", 1))
    text = path.read_text()
    assert SUITE in programs_in(path, WITH_SUITE)
    with pytest.raises(SpackError, match=f"programs of {WITH_SUITE} .* write them so"):
        build_options.define(tmp_path, with_programs(*programs), WITH_SUITE)
    assert path.read_text() == text


def test_a_program_is_not_asked_for_twice() -> None:
    with pytest.raises(table.TableError, match=r"options\.own.*says twice which npb is installed"):
        with_programs(SUITE, OTHER_SUITE, "npb@=3.4.2")


@pytest.mark.parametrize("program", ["npb", "npb@3.4.3", "npb@=3.4.3; rm", "npb@=3.4.3 a=$b", ""])
def test_programs_that_are_no_pinned_specification_are_refused(program: str) -> None:
    with pytest.raises(table.TableError, match=r"options\.own\.programs\.0: string should match"):
        with_programs(program)


@pytest.mark.parametrize("name", NAMES)
def test_spack_yaml_asks_for_the_programs_that_the_table_says(name: str) -> None:
    asked = chosen(name, "programs")
    assert {*load_table(PROJECT).resolve(name).programs} <= {*asked}
    # Twice in one environment Spack would want two of a package.
    packages = [one.partition("@")[0] for one in asked]
    assert len(packages) == len({*packages})


def test_bases_are_what_they_were_before_there_were_options() -> None:
    """Of what has no option, and of an option of the MPI alone: images and caches hang on that."""
    pinned: Sources = load_sources(PROJECT)

    def both(known: table.ImplementationTable, name: str) -> tuple[bases.Base, ...]:
        return bases.bases_of(PROJECT, known, known.resolve(name), pinned, "mmdebstrap")

    data = yaml.safe_load(TEXT)
    for entry in data["implementations"].values():
        entry.pop("options", None)
    without = table.parse_table(yaml.safe_dump(data))
    for name in without.built_by("spack"):
        assert both(load_table(PROJECT), name) == both(without, name)
    assert both(KNOWN, OWN) == both(KNOWN, OF)


SPACK = {"family": "mpich", "version": "1", "builder": "spack"}


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ({**SPACK, "builder": "wheel", "options": {"a": "b=c"}},
         "implementations.x-spack: `options` belong to `builder: spack`; remove the key"),
        ({**SPACK, "external": True, "packages": {"build": ["a"], "run": ["b"]},
          "options": {"a": "b=c"}},
         "implementations.x-a-spack: the MPI is the distribution's, and not built with other "
         "options; remove `mpi` of that option"),
        ({**SPACK, "options": {"a": "b=c; rm"}}, "x-spack.options.a.mpi: string should match"),
        ({**SPACK, "options": {"a": {"blas": "blis"}}},
         "implementations.x-spack.options.a: unknown key `blas`"),
        ({**SPACK, "build_of": "openmpi-5.0.11", "build_option": "a"},
         "implementations.x-spack: openmpi-5.0.11 has no option `a`; write builds with other"),
        ({**SPACK, "options": "b=c"}, "implementations.x-spack.options: input should"),
        ({**SPACK, "options": {"taken": "b=c"}},
         "x-spack: `x-taken-spack`, a build of its `options`, has an entry of its own"),
    ],
)  # fmt: skip
def test_options_that_mean_nothing_are_refused(entry: dict[str, object], sentence: str) -> None:
    with pytest.raises(table.TableError) as raised:
        table.parse_table(changed(**{"x-spack": entry, "x-taken-spack": SPACK}))
    assert sentence in str(raised.value)


def test_options_of_two_implementations_have_two_names() -> None:
    both = {"x-spack": {**SPACK, "options": {"a-b": "c=d"}},
            "x-a-spack": {**SPACK, "options": {"b": "c=e"}}}  # fmt: skip
    with pytest.raises(table.TableError, match="x-a-b-spack`, a build of its `options`, is one of"):
        table.parse_table(changed(**both))


def test_what_the_table_says_twice_is_refused() -> None:
    of = "  mpich-4.0.2-spack:\n"
    text = TEXT.replace(of, f"{of}    options: {{a: fabrics=x, a: fabrics=y}}\n")
    assert text != TEXT
    with pytest.raises(table.TableError, match="the key `a` is there twice"):
        table.parse_table(text)


@pytest.mark.parametrize("name", NAMES)
def test_spack_yaml_defines_what_the_table_says(name: str) -> None:
    assert build_options.wanted(load_table(PROJECT), DEFINED, name) == DEFINED[name]


def test_what_the_table_says_is_already_in_spack_yaml_with_its_includes(tmp_path: Path) -> None:
    root = checkout(tmp_path)
    for path in OPTIONS:
        (root / path.parent.relative_to(PROJECT)).mkdir(parents=True)
    assert [name for name in NAMES if build_options.define(root, load_table(PROJECT), name)] == []


def checkout(tmp_path: Path, *without: str) -> Path:
    """A folder with spack.yaml alone, which does not define some implementations."""
    lines = (PROJECT / "spack.yaml").read_text().splitlines()
    for name in without:
        (place,) = [n for n, line in enumerate(lines) if line.endswith(f'== "{name}"')]
        del lines[place - 1 : place + 1]
    (tmp_path / "spack.yaml").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_spack_yaml_is_given_the_definition_that_the_table_asks_for(tmp_path: Path) -> None:
    root, whole = checkout(tmp_path), (PROJECT / "spack.yaml").read_text()
    path = root / "spack.yaml"
    assert build_options.define(root, KNOWN, OWN)
    assert spack_environment.environment_names(root) == {**DEFINED, OWN: SPECIFICATION}
    # It stands behind the one that it is a build of, and all else is as it was.
    names = list(spack_environment.environment_names(root))
    assert names.index(OWN) == names.index(OF) + 1
    lines = path.read_text().splitlines()
    own = [number for number, line in enumerate(lines) if line.endswith(f'== "{OWN}"')]
    assert "\n".join([*lines[: own[0] - 1], *lines[own[0] + 1 :], ""]) == whole
    assert not build_options.define(root, KNOWN, OWN)
    assert not build_options.define(root, KNOWN, OF)
    # What the table says has changed.
    made = path.read_text()
    path.write_text(made.replace("fabrics=knem", "fabrics=psm"))
    assert build_options.define(root, KNOWN, OWN)
    assert path.read_text() == made


def test_spack_yaml_includes_what_the_site_says_of_an_option(tmp_path: Path) -> None:
    root = checkout(tmp_path)
    before = yaml.safe_load((root / "spack.yaml").read_text())["spack"]["include"]
    folder = f"site_configs/{spack_environment.SITE}/spack/{spack_environment.OPTIONS}"
    (root / folder / "knem").mkdir(parents=True)
    assert build_options.define(root, KNOWN, OWN)
    first, *rest = yaml.safe_load((root / "spack.yaml").read_text())["spack"]["include"]
    # Before the site's own, which it replaces.
    assert rest == before
    assert first["path"] == "site_configs/$WYEAST_SITE/spack/options/knem"
    # An option may be called as another ends: that is none of its builds.
    other = OWN.replace("-knem-", "-ucx-knem-")
    for name, included in ((OWN, True), (OF, False), (other, False), ("", False)):
        assert eval(first["when"], {"env": {"WYEAST_IMPLEMENTATION": name}}) is included
    assert not build_options.define(root, KNOWN, OWN)
    text = (root / "spack.yaml").read_text()
    (root / "spack.yaml").write_text(text.replace("  include:\n", "  include: # all\n").replace(
        f"  - path: {first['path']}\n    when: {first['when']}\n", ""))  # fmt: skip
    with pytest.raises(SpackError, match="has no line `  include:`"):
        build_options.define(root, KNOWN, OWN)


def test_what_the_site_says_of_options_is_included_before_all_else() -> None:
    included = [one["path"] for one in DATA["include"]]
    told = [
        option
        for name in NAMES
        if (option := load_table(PROJECT).resolve(name).build_option)
        and option in {path.parent.name for path in OPTIONS}
    ]
    assert {path.parent.name for path in OPTIONS} == {*told}, "an option of no implementation"
    assert sorted(included[: len(told)]) == sorted(
        f"site_configs/$WYEAST_SITE/spack/options/{option}" for option in told
    )
    # They decide locks, and nothing else of other images.
    assert not {*OPTIONS} & {*spack_environment.recipe_files(PROJECT)}


def test_a_build_that_would_be_another_than_it_is_called_is_refused(tmp_path: Path) -> None:
    def define(of: str, option: str, says: object) -> None:
        entry = yaml.safe_load(TEXT)["implementations"][of]
        known = table.parse_table(changed(**{of: {**entry, "options": {option: says}}}))
        name = f"{of.removesuffix('-spack')}-{option}-spack"
        build_options.define(checkout(tmp_path), known, name)

    # spack.yaml would give it the programs of those that are built from sources.
    with pytest.raises(SpackError, match="has -source- in its name, by which"):
        define("openmpi-5.0.10-spack", "source", "fabrics=none")
    define("openmpi-4.1.4-source-spack", "source", "fabrics=cma")
    with pytest.raises(SpackError, match=r"`\+a ~a` says twice what a is"):
        define(OF, "both", "+a ~a")
    with pytest.raises(SpackError, match="there is no folder site_configs/virtual/spack/options/n"):
        define(OF, "nothing", {})
    place = f"site_configs/{spack_environment.SITE}/spack/{spack_environment.OPTIONS}/nothing"
    (tmp_path / place).mkdir(parents=True)
    define(OF, "nothing", {})


def test_what_spack_yaml_lacks_altogether_is_said(tmp_path: Path) -> None:
    with pytest.raises(SpackError, match=f"spack.yaml does not define {OF}, which"):
        build_options.define(checkout(tmp_path, OF), KNOWN, OWN)
    path = checkout(tmp_path) / "spack.yaml"
    condition = f'when: env.get("WYEAST_IMPLEMENTATION", "") == "{OF}"'
    written = f"  - mpi: [{DEFINED[OF]}]\n    {condition}\n"
    assert written in path.read_text()
    other = f"  - {condition}\n    mpi: [{DEFINED[OF]}]\n"
    path.write_text(path.read_text().replace(written, other))
    with pytest.raises(SpackError, match="in two lines"):
        build_options.define(tmp_path, KNOWN, OWN)


def test_no_lock_is_made_of_what_spack_yaml_does_not_define(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = spack.Spack(Path("/nowhere"), Path("/nowhere"), "1.1.0")
    monkeypatch.setattr(spack, "provide", lambda root: found)
    monkeypatch.setattr(lock, "load_table", lambda root: KNOWN)
    monkeypatch.setattr(spack_environment, "provide_base",
                        lambda *_: pytest.fail("a lock is being made"))  # fmt: skip
    with pytest.raises(SpackError, match=r"spack\.yaml does not define"):
        lock.renew(checkout(tmp_path, OF), [OWN])


def test_a_lock_is_made_of_what_spack_yaml_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found, root = spack.Spack(Path("/nowhere"), Path("/nowhere"), "1.1.0"), checkout(tmp_path)
    asked: list[str] = []

    def concretize(root: Path, found: object, base: object, name: str) -> str:
        asked.append(spack_environment.environment_names(root)[name])
        raise SpackError("nothing is solved here")

    monkeypatch.setattr(spack, "provide", lambda root: found)
    monkeypatch.setattr(lock, "load_table", lambda root: KNOWN)
    monkeypatch.setattr(spack_environment, "provide_base", lambda *_: None)
    monkeypatch.setattr(spack_environment, "concretize", concretize)
    assert lock.renew(root, [OWN]) == [OWN]
    assert asked == [SPECIFICATION]
    assert f"spack.yaml defines {OWN} now" in capsys.readouterr().out
