"""Where programs spend their time in MPI (Kearns 2003, Figure 14 and Table 8), by a profile.

Each is an experiment as it stands, with its program profiled. No launch of these is compared: a
profile costs a little time.
"""

from typing import Any

import reframe as rfm
from reframe.core.builtins import parameter
from reframe.core.meta import make_test

from analysis.profile import PREFIX
from reframe_checks.halo_exchange import HaloExchange
from reframe_checks.linpack import Linpack
from reframe_checks.mixins.experiment import Experiment
from reframe_checks.mixins.profiled import Profiled
from reframe_checks.mixins.tiers import TIER

#: By tier: the experiments that are profiled, each with the values of its parameters.
PROFILED: dict[str, list[tuple[type[Experiment], dict[str, list[Any]]]]] = {
    "quick": [
        (HaloExchange, {"suite": ["halo"]}),
        (Linpack, {"grid": ["1x2"], "n": [2000]}),
    ],
    "paper": [
        (HaloExchange, {"suite": ["halo"]}),
        (Linpack, {}),
    ],
}

for experiment, values in PROFILED[TIER]:
    name = f"{PREFIX}{experiment.__name__}"
    body = {
        **{key: parameter(chosen, loggable=True) for key, chosen in values.items()},
        "descr": f"{experiment.descr}, profiled",
        "require_reference": False,
        "__module__": __name__,
    }
    rfm.simple_test(make_test(name, (Profiled, experiment), body))
