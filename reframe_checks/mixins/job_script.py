"""Words for a job script, each quoted by one function.

ReFrame joins what it is given with spaces (the options of a launcher and of a container platform,
the image's path, commands) and writes it into a shell script. So all of it is quoted here, whoever
it comes from: a checkout's path may have spaces, and anybody may have written an image's labels.
"""

import shlex
from pathlib import Path

from reframe.core.containers import Apptainer
from reframe.core.exceptions import SanityError

from containers.apptainer import mount_option


def quoted(*words: str | Path | int) -> str:
    """Return the words of a command quoted for a shell: each stays one word and is never expanded.

    Raises SanityError for what no script can hold: a NUL, and names of files that are not text.
    """
    texts = [str(word) for word in words]
    for text in texts:
        if "\0" in text or not _is_text(text):
            raise SanityError(
                f"{text!a} cannot be written into a job script: it is not text; give the file "
                "or folder another name"
            )
    return shlex.join(texts)


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class QuotedApptainer(Apptainer):  # type: ignore[misc]
    """ReFrame's way to start a container by Apptainer, with options, image and paths as words.

    `options` and `image` are unquoted, and `command` is the result of quoted().
    """

    @property
    def name(self) -> str:
        """Return what the platform is called in a site's configuration."""
        return "Apptainer"

    def launch_command(self, stagedir: str) -> str:
        """Return the command for a job script."""
        folders = [*self.mount_points, (stagedir, self.mount_stagedir)]
        words = [
            "apptainer", "exec", *(mount_option(*folder) for folder in folders),
            "--pwd", self.workdir, *self.options, self.image,
        ]  # fmt: skip
        # Split and quoted again, so that nothing but words comes through.
        return quoted(*words, *shlex.split(self.command))
