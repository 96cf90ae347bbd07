"""The commands of `python -m analysis` without a process of their own, which takes seconds."""

import subprocess
from functools import cache
from unittest import mock

import typer
from typer import testing

from analysis.__main__ import app

#: Finding the parameters of all commands takes as long as some of them: once is enough.
found = cache(typer.main.get_command)


def analysis(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command; an exception that it lets out is raised here."""
    with mock.patch.object(testing, "_get_command", found):
        result = testing.CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    return subprocess.CompletedProcess(arguments, result.exit_code, result.stdout, result.stderr)
