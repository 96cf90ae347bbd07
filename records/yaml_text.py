"""YAML as data: by libyaml where PyYAML has it, which takes a tenth of the time.

Every start of ReFrame and of an analysis reads some.
"""

from typing import Any

import yaml

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def from_yaml(text: str) -> Any:
    """Return the data that a text in YAML stands for; raises yaml.YAMLError."""
    return yaml.load(text, Loader=LOADER)
