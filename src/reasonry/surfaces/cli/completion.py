"""`reasonry completion`: what the Tab key offers in a shell."""

from __future__ import annotations

import sys
from typing import Any, Literal

from cyclopts.completion.detect import ShellDetectionError, detect_shell

from ...errors import UsageError
from .output import print_line, print_note
from .settings import OutputOptions

Shell = Literal["bash", "zsh", "fish", "powershell"]


def show_(shell: Shell | None = None, /) -> int:
    """Print the script that makes a shell complete commands, options, strategies, runs and sessions.

    Parameters
    ----------
    shell
        Without it, the one this command is called from.
    """
    sys.stdout.write(_command_line().generate_completion(shell=shell or _find_shell()))
    return 0


def install_(shell: Shell | None = None, /, *, output: OutputOptions = OutputOptions()) -> int:
    """Put that script where the shell looks for it, and have the shell load it when it starts.

    Parameters
    ----------
    shell
        Without it, the one this command is called from.
    """
    shell = shell or _find_shell()
    try:
        path = _command_line().install_completion(shell=shell)
    except OSError as error:
        raise UsageError(f"{error.filename or 'the script'} cannot be written: {error.strerror}") from None

    def draw() -> None:
        print_line(f"written to {path}")
        print_note(f"It holds in every {shell} that is started from now on.")

    return output.show({"shell": shell, "path": str(path)}, draw)


def _command_line() -> Any:
    from .commands import app

    return app


def _find_shell() -> Shell:
    try:
        return detect_shell()
    except ShellDetectionError:
        message = "this is called from no shell that is known here; name one: bash, zsh, fish, powershell"
        raise UsageError(message, choices=["bash", "zsh", "fish", "powershell"]) from None
