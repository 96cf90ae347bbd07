"""What all tests share."""

from hypothesis import settings

# No time limit for an example: on a busy machine it would fail what is right.
settings.register_profile("wyeast", deadline=None)
settings.load_profile("wyeast")
