"""The commands of `python -m analysis` without a process of their own, which takes seconds."""

import subprocess

from typer.testing import CliRunner

from analysis.__main__ import app


def analysis(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command; an exception that it lets out is raised here."""
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    return subprocess.CompletedProcess(arguments, result.exit_code, result.stdout, result.stderr)
