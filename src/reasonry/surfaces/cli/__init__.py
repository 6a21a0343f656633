"""The command line: runs a command and reports its errors."""

import io
import os
import sys
import traceback
from collections.abc import Sequence

from ...errors import ReasonryError
from .. import present
from .output import print_document, print_note

_CLOSED_PIPE = 128 + 13
"""The exit code of a command that SIGPIPE ends."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit with its exit code. `arguments` defaults to `sys.argv[1:]`."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Characters that the console's encoding lacks appear as escapes. Otherwise, they would end the command.
        sys.stdout.reconfigure(errors="backslashreplace")
    sys.exit(run(list(sys.argv[1:] if arguments is None else arguments)))


def run(arguments: list[str]) -> int:
    """Run a command. Return the exit code, which is 0 only if the command succeeded."""
    as_json = "--json" in arguments
    with present.masked_output(os.environ):
        try:
            return _call(arguments)
        except ReasonryError as error:
            return _report(error, as_json)
        except KeyboardInterrupt:
            return present.EXIT_CODES["cancelled"]
        except BrokenPipeError:
            # The program that reads the output, such as `head`, has ended. End as after SIGPIPE, with nothing to flush.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            return _CLOSED_PIPE
        except Exception as error:
            if os.environ.get("REASONRY_DEBUG"):
                traceback.print_exc()
            reason = f"{type(error).__name__}: {error}"
            message = f"internal error, please report it (REASONRY_DEBUG=1 shows where): {reason}"
            return _report(ReasonryError(message), as_json)


def _call(arguments: list[str]) -> int:
    if arguments == ["mcp"] and not sys.stdin.isatty():
        # Agents wait while the server starts. Skipping the command line library saves a third of the start time.
        from ..mcp.serve import main as serve

        serve()
        return 0
    from .commands import call

    return call(arguments)


def _report(error: ReasonryError, as_json: bool) -> int:
    if as_json:
        print_document(present.error_document(error))
    else:
        print_note(f"reasonry: {error.message}")
    return present.exit_code(error.code)
