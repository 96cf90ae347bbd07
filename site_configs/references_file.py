"""What references.yaml may contain; anything else gets a sentence with file and line."""

from collections.abc import Iterator
from pathlib import Path

from records import layout
from records.experiments import experiments
from records.profile import PREFIX
from site_configs.entries import (
    LineOfFile,
    SiteEntry,
    SiteError,
    are_texts,
    composed,
    entries_of,
    is_number,
    is_positive,
    is_text,
    nearest,
)


def _metric_problems(metric: str, entry: SiteEntry) -> Iterator[str]:
    """Yield what is wrong with one reference: `metric: [value, lower, upper, unit]`."""
    shape, begin = "[value, lower threshold, upper threshold, unit]", f"{entry.place}: `{metric}`"
    if not isinstance(entry.value, list) or len(entry.value) != 4:
        yield f"{begin} must be {shape}, not {entry.value}"
        return
    value, lower, upper, unit = entry.value
    if not is_positive(value):
        yield f"{begin}: the value must be a number above 0, not {value}; the shape is {shape}"
    if lower is not None and not (is_number(lower) and -1 <= lower <= 0):
        yield (
            f"{begin}: the lower threshold must be a fraction from -1 to 0, such as -0.1 for 10% "
            f"less, or null, not {lower}"
        )
    if upper is not None and not (is_number(upper) and upper >= 0):
        yield (
            f"{begin}: the upper threshold must be a fraction of 0 or more, such as 0.1 for 10% "
            f"more, or null, not {upper}"
        )
    if not is_text(unit):
        yield f'{begin}: the unit must be text, such as "s" or "B/s", not {unit}'


def _reference_problems(path: Path, root: Path, site: str, partition: str) -> Iterator[str]:
    """Yield a sentence for all that is wrong with a references.yaml: its whole schema is here."""
    shown = layout.name_of(root, path)
    loader, node = composed(path, shown)
    if node is None:
        return
    of_site = ("*", site, f"{site}:{partition}")

    def below(entry: SiteEntry, levels: int) -> Iterator[str]:
        for key, inner in entries_of(loader, entry.node, entry.place).items():
            if key == "$index":
                continue
            yield from below(inner, levels - 1) if levels else _metric_problems(key, inner)

    for name, entry in entries_of(loader, node, LineOfFile(shown, 1)).items():
        # A profiled experiment is a check of its own.
        if not {name, name.removeprefix(PREFIX)} & experiments().keys():
            yield f"{entry.place}: no check is called `{name}`{nearest(name, experiments())}"
            continue
        keys = entries_of(loader, entry.node, entry.place)
        index = keys.get("$index")
        if index and not (are_texts(index.value) and index.value):
            yield f"{index.place}: `$index` must be a list of a check's parameters"
            continue
        for key in () if index else keys:
            if key not in of_site:
                yield (
                    f"{keys[key].place}: without `$index` the references of {name} are by system, "
                    f"and `{key}` is not this one; use `{site}`"
                )
        yield from below(entry, len(index.value) if index else 1)


def check_references(path: Path, root: Path, site: str, partition: str) -> None:
    """Raise SiteError with a sentence for each mistake of a site's references.yaml."""
    problems = list(_reference_problems(path, root, site, partition))
    if problems:
        raise SiteError("\n".join(problems))
