"""Random inputs for whatever reads what others made: `python -m tests.fuzz [--seconds 60]`.

A reader may refuse an input by an error of its own, which is a sentence. Any other exception, an
input that keeps it busy or one that takes much memory is a fault; the input is then kept in
`tests/corpus`, which `make test` replays.
"""

import argparse
import gzip
import hashlib
import json
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from types import FrameType
from typing import Any

from containers import bill_of_materials, images, store
from containers.registry_connection import RegistryError
from containers.sharing import registry
from records import archive, events, files, fold, journal, manifest, packs
from records.base import CampaignError, RecordError
from records.causes import harmless
from records.foreign.reading import read_set
from records.foreign.run import LEAST, MOST, ForeignError
from records.hpl import read_hpl_output
from records.imb import read_imb_output
from records.launch import RECORD
from records.netpipe import read_netpipe_hosts, read_netpipe_output
from records.npb import read_npb_output
from records.program_output import read_program_output

PROJECT = Path(__file__).resolve().parents[1]
CORPUS = PROJECT / "tests" / "corpus"
#: Of the processor's time in seconds, what no small input may take; and of memory in bytes, what
#: this process may have: limits of the readers themselves are smaller.
MOST_S, MOST_MEMORY = 20.0, 6 * 2**30
#: Where files are made that live for a moment.
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
#: An archive with more content than this is refused.
MOST_UNPACKED = 2**24
WORDS = (
    b"null", b"{}", b"[]", b'""', b"-1", b"0", b"1e999", b"NaN", b"1" * 400, b"\\ud800", b"\x1b[2J",
    b"\0", b"\n", b"../", b"/", b"[" * 3000, b'{"a":' * 3000, b"\xff" * 8, b"\x7f" + b"\xff" * 7,
    b"9223372036854775807", "\u202e\u2028".encode(), b"true", b"0x10", b" ", b'"',
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 2**63, 10**400, 1e308, float("nan"), "", "\ud800", "\x1b[2J", "a" * 70000,
    "../x", [], {}, [[]], {"": None}, "2026-02-30T00:00:00Z", "9999-12-31T23:59:59Z",
    "0" * 64, ["x"] * 1000, {str(k): k for k in range(100)}, "\n", "-" * 65,
)  # fmt: skip


@dataclass(frozen=True)
class Reader:
    """What reads an input: it may only raise its own errors; seeds are inputs that it takes."""

    seeds: Callable[[Path], list[bytes]]
    #: Gets the input, and a folder of its own.
    read: Callable[[bytes, Path], object]
    refusals: tuple[type[Exception], ...]
    #: From the inside of an input to the input: what is mutated is either.
    wrap: Callable[[bytes], bytes] = bytes
    unwrap: Callable[[bytes], bytes] = bytes


def archive_seeds(folder: Path) -> list[bytes]:
    members = {
        "campaign/manifest.json": archive.Member(b"{}"),
        f"campaign/{'long/' * 30}name": archive.Member(b"x" * 600, executable=True),
    }
    path = folder / "bundle.tar.gz"
    archive.write(path, "name", members, archive.sums_of(members), 0)
    return [path.read_bytes()]


def read_archive(data: bytes, folder: Path) -> None:
    path, into = folder / "bundle.tar.gz", folder / "into"
    path.write_bytes(data)
    into.mkdir()
    try:
        archive.unpack(path, into, MOST_UNPACKED)
    finally:
        written = {found.relative_to(folder).parts[0] for found in folder.rglob("*")}
        assert written <= {path.name, "into"}, f"it wrote {written}"
        assert not any(found.is_symlink() for found in folder.rglob("*")), "it made a link"
    archive.read_sums(path)


def gunzipped(data: bytes) -> bytes:
    return gzip.decompress(data)


def sif_seeds(folder: Path) -> list[bytes]:
    from tests.sif_files import Part, said, write_sif

    labels = {"org.wyeast.implementation": "mpich-5.0.2", "org.wyeast.pmi": "pmi2"}
    properties = [{"name": bill_of_materials.INPUTS, "value": "0" * 64}]
    told = {"bomFormat": "CycloneDX", "metadata": {"component": {"properties": properties}}}
    bill = Part(0x4009, json.dumps(told).encode())
    system = Part(0x4004, bytes(300))
    return [
        write_sif(folder / "one.sif", parts).read_bytes()
        for parts in ([said(labels)], [system, said(labels), bill], [bill, bill])
    ]


def read_sif(data: bytes, folder: Path) -> None:
    path = folder / "image.sif"
    path.write_bytes(data)
    try:
        images.labels_inside(path)
    except images.ImageError:
        bill_of_materials.bill_inside(path)
        bill_of_materials.inputs_of(path)


def label_seeds(_: Path) -> list[bytes]:
    labels = {
        "org.wyeast.implementation": "mpich-5.0.2", "org.wyeast.family": "mpich",
        "org.wyeast.version": "5.0.2", "org.wyeast.builder": "wheel", "org.wyeast.pmi": "pmi2",
        "org.wyeast.mpiexec": "mpiexec", "org.wyeast.mpiexec.pinned": "-bind-to core",
        "org.wyeast.variant.tcp": "FI_PROVIDER=tcp", "org.wyeast.init_wait": "A=1 B=2",
        "org.wyeast.eager_limit": "A", "org.wyeast.hpl": "2.3", "maintainer": "somebody",
    }  # fmt: skip
    return [json.dumps(labels).encode()]


def read_labels(data: bytes, _: Path) -> None:
    words = files.json_of(data.decode())
    images.checked_labels(words, "an image")
    images.read_labels(words, "an image", "tcp")


def lock_seeds(_: Path) -> list[bytes]:
    entry = {
        "file": "mpich-5.0.2.sif", "sha256": "0" * 64, "bytes": 1, "inputs_sha256": "1" * 64,
        "built_utc": "2026-01-01T00:00:00Z", "labels": {"org.wyeast.pmi": "pmi2"},
        "origin": {"how": "built"},
    }  # fmt: skip
    return [json.dumps({"schema": images.SCHEMA, "images": {"mpich-5.0.2": entry}}).encode()]


def read_lock(data: bytes, folder: Path) -> None:
    (folder / "containers").mkdir()
    (folder / images.LOCK).write_bytes(data)
    try:
        for entry in images.load_lock(folder)["images"].values():
            path = store.path_of(folder, entry)
            assert path.parent in (store.folder(folder), store.by_digest(folder))
        images.available(folder)
    except images.ImageError:
        pass
    registry.read_lock(data.decode(), "a lock")


def chained(lines: list[bytes]) -> bytes:
    """Return lines of a journal as if they had been written one after the other."""
    before, text = journal.NOTHING, b""
    for number, line in enumerate(lines, 1):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            entry = None
        if isinstance(entry, dict):
            line = json.dumps(entry | {"seq": number, "before": before}).encode()
        before = hashlib.sha256(line + b"\n").hexdigest()
        text += line + b"\n"
    return text


def journal_seeds(folder: Path) -> list[bytes]:
    name = "round001_EchoTest_ranks=2_mpich-5.0.2"
    planned = events.PlannedLaunch(
        launch=name, cell="EchoTest ranks=2", implementation="mpich-5.0.2"
    )
    happened: list[events.Event] = [
        events.Begun(campaign="c"), events.SessionBegan(round=1, process=7),
        events.Planned(round=1, launches=(planned,)), events.Intended(launch=name, attempt=1),
        events.Submitted(launch=name, attempt=1, job="7"),
        events.Lost(launch=name, attempt=1, cause="a node died"), events.Resumed(),
        events.Intended(launch=name, attempt=2),
        events.Recorded(launch=name, attempt=2, position=1, outcome="sound"),
        events.Gone(launch=name, cause="removed"), events.Stopped(cause="full disk"),
    ]  # fmt: skip
    with journal.open_journal(folder) as book:
        for event in happened:
            book.append(event, sync=False)
    return [(folder / journal.FILE).read_bytes()]


def read_journal(data: bytes, folder: Path) -> None:
    (folder / journal.FILE).write_bytes(data)
    content = journal.read_journal(folder)
    assert content is not None
    fold.fold(content.events)


def manifest_seeds(_: Path) -> list[bytes]:
    with archive.opened(PROJECT / "runs" / "sample.tar.gz", 2**32) as packed:
        while info := packed.next():
            if info.name.endswith(f"/{manifest.FILE}"):
                content = packed.extractfile(info)
                assert content is not None
                return [content.read()]
    raise AssertionError("the sample has no manifest")


def read_manifest(data: bytes, folder: Path) -> None:
    (folder / manifest.FILE).write_bytes(data)
    manifest.read_manifest(folder)


def pack_seeds(_: Path) -> list[bytes]:
    parts = [packs.member(f"round001_A/{name}", b"x" * 700, 1.0) for name in (RECORD, "out")]
    squeezed = packs.member(f"round001_A/err{packs.GZ}", gzip.compress(b"y" * 900, mtime=0), 1.0)
    named = packs.member(f"round002_{'B' * 150}/{RECORD}", b"{}", 2.0)
    return [b"".join((*parts, squeezed, named))]


def read_pack(data: bytes, _: Path) -> None:
    pack = BytesIO(data)
    for _name, _text in packs.texts_of(pack):
        pass
    for segment in packs.segments_of(pack):
        packs.whole(pack, segment)


def result_seeds(folder: Path) -> list[bytes]:
    from tests.analysis.support import foreign

    captured = PROJECT / "tests" / "records" / "captured" / "imb_pingpong.stdout"
    session = foreign.session(1, [100.0, 101.0], [99.0])
    log = foreign.perflog_file(folder / "Stream.log", foreign.perflog([100.0, 101.5]))
    return [
        log.read_bytes(), foreign.osu([1.5, 2.5, 3.5]).encode(), captured.read_bytes(),
        json.dumps(foreign.google([10.0, 11.0])).encode(), json.dumps(session).encode(),
        foreign.database(folder / "results.db", [session]).read_bytes(),
    ]  # fmt: skip


def read_results(data: bytes, folder: Path) -> None:
    (folder / "results").write_bytes(data)
    for one in read_set(folder / "results").runs:
        for measured in one.measured:
            assert all(LEAST <= value.value <= MOST for value in measured.values.values())


def output_seeds(_: Path) -> list[bytes]:
    from tests.analysis.support.synthetic import HPL
    from tests.reframe_checks.conftest import pingpong

    names = ("netpipe.out", "netpipe.stdout", "imb_allreduce.stdout", "npb34_cg.stdout",
             "npb34_is.stdout")  # fmt: skip
    captured = PROJECT / "tests" / "records" / "captured"
    own = (pingpong(iterations=3), HPL.format(n=2000, q=2, time=0.13, gflops=40.8))
    return [*(text.encode() for text in own), *((captured / name).read_bytes() for name in names)]


def read_output(data: bytes, folder: Path) -> None:
    path = folder / "stdout"
    path.write_bytes(data)
    refusals = []
    for read in (read_program_output, read_hpl_output, read_netpipe_output, read_netpipe_hosts,
                 read_imb_output, read_npb_output):  # fmt: skip
        try:
            read(path)
        except RecordError as error:
            refusals.append(error)
    # Of several programs no text is.
    if len(refusals) > 5:
        raise refusals[-1]


READERS = {
    "archive": Reader(
        archive_seeds, read_archive, (archive.BundleError,),
        lambda data: gzip.compress(data, 1, mtime=0), gunzipped,
    ),
    "sif": Reader(sif_seeds, read_sif, (images.ImageError,)),
    "labels": Reader(label_seeds, read_labels, (images.ImageError, ValueError)),
    "lock": Reader(lock_seeds, read_lock, (RegistryError, UnicodeDecodeError)),
    "journal": Reader(
        journal_seeds, read_journal, (CampaignError,), lambda data: chained(data.split(b"\n")[:-1])
    ),
    "manifest": Reader(manifest_seeds, read_manifest, (CampaignError,)),
    "pack": Reader(pack_seeds, read_pack, ()),
    "output": Reader(output_seeds, read_output, (RecordError,)),
    "results": Reader(result_seeds, read_results, (ForeignError,)),
}  # fmt: skip


class TooLongError(BaseException):
    """A reader was kept busy; no reader's own errors include it."""


@contextmanager
def bounded() -> Iterator[None]:
    """Have whatever takes too much of the processor's time end in TooLongError."""

    def stop(_: int, __: FrameType | None) -> None:
        raise TooLongError(f"it took more than {MOST_S:g} s of a processor")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, MOST_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def new_folder() -> "tempfile.TemporaryDirectory[str]":
    """Return a new folder, which is gone at the end of the block that it is used in."""
    return tempfile.TemporaryDirectory(dir=MEMORY)


def fault(reader: Reader, data: bytes) -> str | None:
    """Return what a reader did to an input that it may not do, or None."""
    with new_folder() as folder:
        try:
            with bounded():
                reader.read(data, Path(folder))
        except reader.refusals as error:
            said = str(error)
            is_sentence = said and harmless(said) == said and len(said.splitlines()) == 1
            return None if is_sentence else f"its refusal is no harmless sentence: {error!r}"
        except (Exception, TooLongError):
            return traceback.format_exc(limit=-4)
    return None


def seeds_of(reader: Reader) -> list[bytes]:
    """Return inputs that a reader takes."""
    with new_folder() as folder:
        return reader.seeds(Path(folder))


def mutated(data: bytes, others: list[bytes], chance: random.Random) -> bytes:
    """Return an input with some random changes."""
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        at = chance.randrange(len(data) + 1)
        end = min(len(data), at + chance.choice((1, 1, 2, 4, 8, 64, 512)))
        match chance.randrange(8):
            case 0:
                data = data[:at] + bytes((chance.randrange(256),)) + data[at + 1 :]
            case 1:
                data = data[:at] + chance.choice(WORDS) + data[at:]
            case 2:
                data = data[:at] + chance.choice(WORDS) + data[end:]
            case 3:
                data = data[:at] + data[end:]
            case 4:
                data = data[:end] + data[at:end] * chance.choice((1, 2, 50)) + data[end:]
            case 5:
                data = data[:at]
            case 6:
                other = chance.choice(others)
                cut = chance.randrange(len(other) + 1)
                data = data[:at] + other[cut : cut + 4096]
            case _:
                data = restructured(data, chance)
    return data


def restructured(data: bytes, chance: random.Random) -> bytes:
    """Return JSON, or one line of JSON lines, with another value somewhere; else the same."""
    lines = data.split(b"\n")
    number = chance.randrange(len(lines))
    try:
        tree = json.loads(lines[number])
    except (ValueError, RecursionError):
        number, lines = 0, [data]
        try:
            tree = json.loads(data)
        except (ValueError, RecursionError):
            return data
    holders = [one for one in _nodes(tree) if isinstance(one, dict | list) and one]
    if not holders:
        return data
    holder = chance.choice(holders)
    key = chance.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
    match chance.randrange(5):
        case 0 | 1:
            holder[key] = chance.choice(VALUES)
        case 2:
            del holder[key]
        case 3:
            holder[key] = chance.choice(list(_nodes(tree)))
            tree = json.loads(json.dumps(tree)) if not _is_cyclic(tree) else None
        case _ if isinstance(holder, dict):
            holder[chance.choice(("", "x" * 300, "\x1b", "__class__", "kind"))] = holder[key]
        case _:
            holder.append(holder[key])
    try:
        lines[number] = json.dumps(tree).encode()
    except (ValueError, RecursionError):
        return data
    return b"\n".join(lines)


def _nodes(tree: Any) -> Iterator[Any]:
    yield tree
    inner = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    for one in inner:
        yield from _nodes(one)


def _is_cyclic(tree: Any) -> bool:
    try:
        json.dumps(tree)
    except ValueError:
        return True
    return False


def inputs(reader: Reader, chance: random.Random) -> Iterator[bytes]:
    """Yield random inputs for a reader, without end."""
    seeds = seeds_of(reader)
    insides = [reader.unwrap(seed) for seed in seeds]
    while True:
        if chance.random() < 0.3:
            yield mutated(chance.choice(seeds), seeds, chance)
        else:
            yield reader.wrap(mutated(chance.choice(insides), insides, chance))


def corpus(name: str) -> list[Path]:
    """Return the inputs that are kept for a reader."""
    return sorted((CORPUS / name).glob("*"))


def keep(name: str, data: bytes) -> Path:
    """Keep an input for `make test`; return its file."""
    path = CORPUS / name / hashlib.sha256(data).hexdigest()[:16]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def main() -> int:
    """Try random inputs for some time; return whether any was a fault."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32)
    parser.add_argument("--only", choices=list(READERS))
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    print(f"seed {options.seed}", flush=True)
    names = [options.only] if options.only else list(READERS)
    bad = 0
    for name in names:
        reader, chance, count = READERS[name], random.Random(f"{options.seed} {name}"), 0
        # What makes the first ones is loaded before the time begins.
        seeds_of(reader)
        until = time.monotonic() + options.seconds / len(names)
        for data in inputs(reader, chance):
            count += 1
            if said := fault(reader, data):
                bad += 1
                print(f"{name}: {keep(name, data)}\n{said}", flush=True)
                break
            if time.monotonic() > until:
                break
        print(f"{name}: {count} inputs", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
