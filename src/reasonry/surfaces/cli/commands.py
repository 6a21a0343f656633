"""The commands, each with the module that is loaded when it is used, so that `--help` is quick; and their help."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from inspect import getdoc
from itertools import takewhile
from pathlib import Path

from cyclopts import App, CycloptsError, Parameter, UnusedCliTokensError

from ...core.text import inert
from ...errors import UsageError
from .output import print_text

COMMANDS: Mapping[str, tuple[str, str]] = {
    "solve": ("solve:solve", "Solve a problem with a strategy and a model."),
    "strategies": ("strategies:strategies", "Show the strategies, or one of them."),
    "plugins": ("strategies:plugins", "List the installed plugins."),
    "doctor": ("doctor:doctor", "Check the installation, keys and agents."),
    "open": ("pages:open_", "Show a run or a session as a page in the browser."),
    "think": ("think:think", "Record one thought of a session."),
    "compare": ("compare:compare", "Run strategies on your own problems or a data set, side by side."),
    "datasets": ("datasets:datasets", "Show the data sets that compare can take, or problems of one."),
    "setup": ("setup:setup", "Install Reasonry in your coding agents, or remove it."),
    "mcp": ("servers:mcp", "Serve MCP over standard input and output."),
    "serve": ("servers:serve", "Serve the page, the API and MCP over HTTP."),
    "submit": ("submit:submit", "Queue a file of problems for workers or a server."),
    "worker": ("servers:worker", "Run a worker on a store in PostgreSQL."),
    "runs": (
        "",
        "List, show, compare, pause, resume, limit, fork, replay, cancel, delete and count runs.",
    ),
    "runs list": ("runs:list_", "List runs, newest first."),
    "runs show": ("runs:show_", "Show one run: its path, questions, events and result."),
    "runs resume": ("runs:resume_", "Resume a run after a crash, a cancellation, a limit or a failure."),
    "runs fork": ("runs:fork_", "Start a run from a point in another one."),
    "runs replay": ("runs:replay_", "Walk a run again without a model and compare."),
    "runs cancel": ("runs:cancel_", "End a run; it can be resumed."),
    "runs delete": ("runs:delete_", "Delete a run that has ended, and its session, for good."),
    "runs stats": (
        "runs:stats_",
        "Show how the replies of the latest runs were read, by model and strategy.",
    ),
    "runs start": ("submit:start_", "Start a run that a server or workers drive."),
    "runs pause": (
        "runs:pause_",
        "Pause a run, whichever process drives it; resume continues it.",
    ),
    "runs limit": ("runs:limit_", "Raise or lower limits of a run, whichever process drives it."),
    "runs diff": ("run_diff:diff", "Show where two runs differ, and how each ended."),
    "sessions": ("", "List, show, search, export, import, delete and pin sessions."),
    "sessions list": ("sessions:list_", "List sessions, last used first."),
    "sessions show": ("sessions:show_", "Draw a session: main line, branches, revisions, stages."),
    "sessions search": ("sessions:search_", "Find thoughts that contain a text."),
    "sessions export": ("sessions:export_", "Export a session as JSON, Markdown or Mermaid."),
    "sessions import": ("sessions:import_", "Import a session."),
    "sessions delete": ("sessions:delete_", "Delete a session for good."),
    "sessions pin": ("sessions:pin_", "Keep a session from expiring."),
    "store": ("", "Back up, restore, verify, copy or compact the store."),
    "store verify": ("store:verify_", "Check everything in the store for damage."),
    "store backup": ("store:backup_", "Copy the store to a file, also while it is in use."),
    "store restore": ("store:restore_", "Replace the store with a backup."),
    "store copy": ("store:copy_", "Copy a store into another one; run it again after an interruption."),
    "store stats": ("store:stats_", "Count the contents of the store and the space they take."),
    "store vacuum": ("store:vacuum_", "Return the space of deleted data to the disk."),
    "coach": ("", "Run a strategy whose questions you answer."),
    "coach start": ("coach:start_", "Start a run whose questions you answer."),
    "coach refute": ("coach:refute_", "Start a run that tries to refute thoughts, a plan or claims."),
    "coach answer": ("coach:answer_", "Answer questions of a run."),
    "coach status": ("coach:status_", "Show the state of a run and its questions."),
    "coach list": ("coach:list_", "List runs; those that wait for your answers come first."),
    "coach cancel": ("coach:cancel_", "End a run; it can be resumed."),
    "coach resume": ("coach:resume_", "Resume a run, whether a model or you answered so far."),
    "coach fork": ("coach:fork_", "Start a run from a point in another one."),
    "tools": ("", "List the tools, and run code in a sandbox."),
    "tools list": ("tools:list_", "List the tools and the sandboxes."),
    "tools run": ("tools:run_", "Run code in a sandbox."),
    "completion": (
        "",
        "Complete commands, options, strategies, runs and sessions with the Tab key.",
    ),
    "completion install": (
        "completion:install_",
        "Install the script for your shell.",
    ),
    "completion show": ("completion:show_", "Print the script for a shell."),
}
"""Where each command is, and what it does; a name without a place is a group."""


@cache
def read_examples() -> dict[str, str]:
    """Return an example for every command, by its name: what was typed, and what it printed in 80 columns.

    They stand in `examples.txt`, in the order in which they were run one after another, over one store; a test runs
    them again. What an example leaves out, and what differs each time, is "…".
    """
    text = Path(__file__).with_name("examples.txt").read_text("utf-8")
    sections = (part.partition("\n") for part in ("\n" + text).split("\n## ")[1:])
    return {name.strip(): example.strip("\n") for name, _, example in sections}


def _command_line() -> App:
    app = App(
        name="reasonry",
        help="Reasoning strategies of the literature as durable, inspectable state machines.",
        help_flags=["--help", "-h"],
        # An option that is off or empty needs no words about it, and no `--no-…` or `--empty-…` beside it.
        default_parameter=Parameter(negative=(), show_default=lambda value: value or None),
    )
    for command, (place, help) in COMMANDS.items():
        *groups, name = command.split()
        parent = app[groups[0]] if groups else app
        if place:
            parent.command(f"reasonry.surfaces.cli.{place}", name=name, help=help)
        else:
            parent.command(App(name=name, help=help))
    return app


app = _command_line()


def call(arguments: list[str]) -> int:
    """Run one command and return its exit code; help ends with an example.

    Raises:
        UsageError: There is no such command, or it does not take these arguments.
    """
    asks_help = not {"--help", "-h"}.isdisjoint(takewhile(lambda word: word != "--", arguments))
    command = complete_help(arguments) if asks_help else ""
    try:
        code = app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
    except UnusedCliTokensError as error:
        raise _usage_error(
            f"unexpected argument: {' '.join(error.unused_tokens or ())[:100]}.", error
        ) from None
    except CycloptsError as error:
        raise _usage_error(str(error), error) from None
    if asks_help and (example := read_examples().get(command)):
        print_text(f"Example:\n\n{example}")
    return code if isinstance(code, int) else 0


def complete_help(arguments: list[str]) -> str:
    """Give a command's page of help the description of its docstring, beyond the sentence that lists have.

    Returns:
        The name of the command.
    """
    command, apps, _ = app.parse_commands([*takewhile(lambda word: not word.startswith("-"), arguments)])
    described = (
        (getdoc(apps[-1].default_command) or "").partition("\n\nParameters\n---")[0].partition("\n\n")[2]
    )
    if described and described not in apps[-1].help:
        apps[-1].help += f"\n\n{described}"
    return " ".join(command)


def _usage_error(fault: str, error: CycloptsError) -> UsageError:
    """Return an error that ends with what the command takes."""
    from cyclopts.help import format_usage

    command = list(error.command_chain or ())
    _, apps, _ = app.parse_commands(command)
    usage = str(format_usage(app, command, execution_path=apps)).strip()
    return UsageError(f"{inert(fault).strip()} Usage: {usage}; --help says more.")
