"""What enters a job script: words, each quoted by one function.

ReFrame joins with spaces what it is handed (the options of a launcher and of a container platform,
the image's path, commands) and writes it into a shell script. So all of it is quoted here, whoever
it comes from: paths of a checkout have spaces, and labels of an image are anybody's.
"""

import shlex
from pathlib import Path

from reframe.core.containers import Apptainer
from reframe.core.exceptions import SanityError

from containers.apptainer import mount_option


def quoted(*words: str | Path | int) -> str:
    """Return words of a command as a shell reads them: each stays one, and none does anything.

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

    `options` and `image` are as they are, and `command` is what quoted() has made of words.
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
        # Split and quoted again, so that nothing else than words comes through.
        return quoted(*words, *shlex.split(self.command))
