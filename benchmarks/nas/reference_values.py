"""Write reference_values.c from literature/npb_verification.yaml, which names its sources.

python benchmarks/nas/reference_values.py > benchmarks/nas/reference_values.c
"""

from pathlib import Path
from typing import Any

import yaml

CLASSES = "SWABCDE"
#: DT has no published values of larger ones.
TRAFFIC_CLASSES = "SWAB"
#: In the order of the enumeration in reference_values.h.
GRAPHS = ("BH", "WH", "SH")
#: Those whose equations are of one kind.
FLOWS = ("LU", "SP", "BT")
LITERATURE = Path(__file__).resolve().parents[2] / "literature" / "npb_verification.yaml"


def initialiser(value: Any) -> str:
    """Return a value as C writes it; a list is nested in braces."""
    if isinstance(value, list):
        return "{" + ", ".join(initialiser(one) for one in value) + "}"
    return repr(value)


def members(kernel: str, name: str, data: dict[str, Any]) -> list[Any]:
    """Return the members of a class' structure in reference_values.h, in order."""
    one = data[kernel]["classes"][name]
    match kernel:
        case "EP":
            # Of classes D and E NPB has the sums alone.
            return [one["m"], one["sx"], one["sy"], one.get("gaussian_pairs", 0),
                    one.get("counts", [0])]  # fmt: skip
        case "IS":
            signs, offsets = zip(*one["adjust"], strict=True)
            sizes = ["total_keys_log2", "max_key_log2", "num_buckets_log2"]
            return [*(one[size] for size in sizes), one["test_index"], one["test_rank"],
                    list(signs), list(offsets),
                    [[*drops, 0, 0][:2] for drops in one.get("lower_from", [[]] * 5)]]  # fmt: skip
        case "CG":
            return [one[key] for key in ("na", "nonzer", "niter", "shift", "zeta")]
        case "MG":
            smoother = "smoother_c_SWA" if name in "SWA" else "smoother_c_B_and_larger"
            assert len(set(one["n"])) == 1
            return [one["n"][0], one["nit"], data["MG"][smoother], one["rnm2"]]
        case "FT":
            return [one["n"], one["niter"], one["checksums"]]
        case "DT":
            return [one["samples"], one["deviation"], one["sources"],
                    [one["checksums"][graph] for graph in GRAPHS]]  # fmt: skip
        case _:
            return [*(one[key] for key in ("n", "iterations", "dt", "xcr", "xce")),
                    one.get("xci", 0.0)]  # fmt: skip


def source_text() -> str:
    """Return the whole of reference_values.c."""
    data = yaml.safe_load(LITERATURE.read_text())
    version = data["meta"]["source_version"]
    lines = [
        "/* Written by reference_values.py from literature/npb_verification.yaml. */",
        '#include "reference_values.h"',
        "",
        f'const char reference_source[] = "{version}, literature/npb_verification.yaml";',
    ]
    for kernel in ("EP", "CG", "MG", "FT", *FLOWS):
        lines.append(f"const double {kernel.lower()}_tolerance = {data[kernel]['tolerance']!r};")
    for kernel in ("EP", "IS", "CG", "MG", "FT", *FLOWS, "DT"):
        low = kernel.lower()
        kind = "flow" if kernel in FLOWS else low
        classes, count = (TRAFFIC_CLASSES, "DT_CLASSES") if kernel == "DT" else (CLASSES, "CLASSES")
        lines += ["", f"const {kind}_reference {low}_references[{count}] = {{"]
        for name in classes:
            lines += [f"    /* {name} */", "    {"]
            for member in members(kernel, name, data):
                if isinstance(member, list) and isinstance(member[0], list):
                    rows = [f"         {initialiser(row)}," for row in member]
                    lines += ["        {", *rows, "        },"]
                else:
                    lines.append(f"        {initialiser(member)},")
            lines.append("    },")
        lines.append("};")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(source_text(), end="")
