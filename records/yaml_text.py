"""YAML as data: by libyaml where PyYAML has it, which takes a tenth of the time.

Every start of ReFrame and of an analysis reads some.
"""

from typing import Any

import yaml

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _OnceLoader(LOADER):  # type: ignore[misc]
    """Reads no mapping in which a key is there twice, of which the last would count."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        """Return a mapping; raises yaml.YAMLError."""
        seen = set[str]()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key `{key.value}` is there twice", key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def from_yaml(text: str, once: bool = False) -> Any:
    """Return the data that a text in YAML stands for; raises yaml.YAMLError.

    With `once`, no mapping may have a key twice.
    """
    return yaml.load(text, Loader=_OnceLoader if once else LOADER)
