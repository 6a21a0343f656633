"""The command line. Commands are named here and loaded when they are used, so that `--help` is quick."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError

from ...errors import ReasonryError, UsageError
from .. import present
from .output import print_document, print_error

_HERE = "reasonry.surfaces.cli"

app = App(
    name="reasonry",
    help="Reasoning strategies of the literature as durable, inspectable state machines.",
    help_flags=["--help", "-h"],
)
app.command(f"{_HERE}.solve:solve", name="solve", help="Solve a problem with a strategy and a model.")
app.command(f"{_HERE}.strategies:strategies", name="strategies", help="Show the strategies, or one of them.")
app.command(f"{_HERE}.doctor:doctor", name="doctor", help="Say what is installed and what would be used.")

runs = App(name="runs", help="List, show, resume, fork, replay and cancel runs.")
for _name, _help in {
    "list": "List runs, newest first.",
    "show": "Show one run: its path, questions, events and result.",
    "resume": "Go on with a run after a crash, a cancellation or a limit.",
    "fork": "Start a new run from a point of another.",
    "replay": "Walk a run again without a model and compare.",
    "cancel": "End a run; it can be resumed.",
}.items():
    runs.command(f"{_HERE}.runs:{_name}_", name=_name, help=_help)
app.command(runs)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    sys.exit(run(list(sys.argv[1:] if arguments is None else arguments)))


def run(arguments: list[str]) -> int:
    """Run one command.

    Returns:
        The exit code; 0 only when what was asked for is done.
    """
    as_json = "--json" in arguments
    try:
        code = app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as error:
        return _failed(UsageError(present.inert(str(error)).strip()), as_json)
    except ReasonryError as error:
        return _failed(error, as_json)
    except (KeyboardInterrupt, BrokenPipeError):
        return present.EXIT_CODES["cancelled"]
    return code if isinstance(code, int) else 0


def _failed(error: ReasonryError, as_json: bool) -> int:
    if as_json:
        print_document(present.error_document(error))
    else:
        print_error(error)
    return present.exit_code(error.code)
