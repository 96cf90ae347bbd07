"""Experiments wait for a preflight that they know by its name alone."""

from reframe_checks.mixins.experiment import preflight_name
from reframe_checks.mixins.image import ContainerImage
from reframe_checks.preflight import Preflight


def test_the_preflight_of_each_image_has_the_name_that_experiments_ask_for() -> None:
    variants = range(Preflight.num_variants)
    assert len(variants) == ContainerImage.num_variants
    for variant in variants:
        of = Preflight.get_variant_info(variant, recurse=True)["fixtures"]["image"]["params"]
        assert of == ContainerImage.get_variant_info(variant)["params"]
        assert preflight_name(variant) == Preflight.variant_name(variant)
