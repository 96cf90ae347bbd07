"""Where programs spend their time in MPI (Kearns 2003, Figure 14 and Table 8), by a profile.

Each is an unchanged experiment with its program profiled. Its launches are not compared: a
profile costs a little time.
"""

from typing import Any

import reframe as rfm
from reframe.core.builtins import parameter
from reframe.core.meta import make_test

from records.profile import PREFIX
from reframe_checks.halo_exchange import HaloExchange
from reframe_checks.linpack import Linpack
from reframe_checks.mixins.experiment import Experiment
from reframe_checks.mixins.profiled import Profiled
from reframe_checks.mixins.tiers import of_tier
from reframe_checks.nas import Nas
from reframe_checks.su3 import Su3

HALO = (HaloExchange, {"suite": ["halo"]})
#: The profiled experiments, each with the values of its parameters; all if none is named.
PROFILED: list[tuple[type[Experiment], dict[str, list[Any]]]] = of_tier(
    quick=[
        HALO,
        (Linpack, {"grid": ["1x2"], "n": [2000]}),
        (Su3, {"suite": ["scaling"], "scaling": ["strong"], "ranks": [2]}),
        (Nas, {"benchmark": ["CG"], "size": ["S"], "ranks": [2]}),
    ],
    paper=[HALO, (Linpack, {}), (Su3, {"scaling": ["strong"]}), (Nas, {"benchmark": ["CG"]})],
    # A problem that fills the site is long enough without a second run.
    site=[HALO],
)

for experiment, values in PROFILED:
    name = f"{PREFIX}{experiment.__name__}"
    body = {
        **{key: parameter(chosen, loggable=True) for key, chosen in values.items()},
        "descr": f"{experiment.descr}, profiled",
        "require_reference": False,
        "__module__": __name__,
    }
    rfm.simple_test(make_test(name, (Profiled, experiment), body))
