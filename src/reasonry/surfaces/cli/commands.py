"""The commands, each with the module that is loaded when it is used, so that `--help` is quick."""

from __future__ import annotations

from collections.abc import Sequence

from cyclopts import App, CycloptsError, Parameter

from ...core.text import inert
from ...errors import UsageError
from .help import CommandLine

_HERE = "reasonry.surfaces.cli"

app = CommandLine(
    name="reasonry",
    help="Reasoning strategies of the literature as durable, inspectable state machines.",
    help_flags=["--help", "-h"],
    # An option that is off or empty needs no words about it, and no `--no-…` or `--empty-…` beside it.
    default_parameter=Parameter(negative=(), show_default=lambda value: value or None),
)
app.command(f"{_HERE}.solve:solve", name="solve", help="Solve a problem with a strategy and a model.")
app.command(f"{_HERE}.strategies:strategies", name="strategies", help="Show the strategies, or one of them.")
app.command(f"{_HERE}.plugins:plugins", name="plugins", help="List what installed packages bring.")
app.command(f"{_HERE}.doctor:doctor", name="doctor", help="Say what is installed and what would be used.")

app.command(f"{_HERE}.open_page:open_", name="open", help="Show a run or a session as a page in the browser.")
app.command(f"{_HERE}.think:think", name="think", help="Record one thought of a session.")
app.command(
    f"{_HERE}.compare:compare", name="compare", help="Run strategies on your own problems, side by side."
)
app.command(f"{_HERE}.setup:setup", name="setup", help="Put Reasonry into your agents, or take it out.")
app.command(f"{_HERE}.mcp:mcp", name="mcp", help="Serve MCP over standard input and output.")
app.command(f"{_HERE}.serve:serve", name="serve", help="Serve the page, the API and MCP over HTTP.")
app.command(
    f"{_HERE}.submit:submit",
    name="submit",
    help="Have the problems of a file solved, in the background of a store.",
)
app.command(
    f"{_HERE}.worker:worker", name="worker", help="Drive runs of a store in PostgreSQL, beside other workers."
)


def _group(name: str, module: str, help: str, commands: dict[str, str]) -> None:
    group = App(name=name, help=help)
    for command, line in commands.items():
        group.command(f"{_HERE}.{module}:{command}_", name=command, help=line)
    app.command(group)


_group(
    "runs",
    "runs",
    "List, show, compare, pause, resume, limit, fork, replay, cancel, delete and count runs.",
    {
        "list": "List runs, newest first.",
        "show": "Show one run: its path, questions, events and result.",
        "resume": "Go on with a run after a crash, a cancellation, a limit or a failure.",
        "fork": "Start a new run from a point of another.",
        "replay": "Walk a run again without a model and compare.",
        "cancel": "End a run; it can be resumed.",
        "delete": "Forget a run that has ended, and its session, for good.",
        "stats": "Show how the replies of the latest runs were read, by model and strategy.",
    },
)
app["runs"].command(
    f"{_HERE}.run_start:start_", name="start", help="Begin a run that a server or workers drive."
)
app["runs"].command(
    f"{_HERE}.run_steering:pause_",
    name="pause",
    help="Have a run begin nothing new, whichever process drives it; resume goes on.",
)
app["runs"].command(
    f"{_HERE}.run_steering:limit_",
    name="limit",
    help="Raise or lower limits of a run, whichever process drives it.",
)
app["runs"].command(
    f"{_HERE}.run_diff:diff", name="diff", help="Say where two runs part, and what came of it."
)
_group(
    "sessions",
    "sessions",
    "List, show, search, export, import, delete and pin sessions.",
    {
        "list": "List sessions, last used first.",
        "show": "Draw a session: main line, branches, revisions, stages.",
        "search": "Find thoughts that contain a text.",
        "export": "Write a session out as JSON, Markdown or Mermaid.",
        "import": "Take a session in.",
        "delete": "Forget a session for good.",
        "pin": "Keep a session from expiring.",
    },
)
_group(
    "store",
    "store",
    "Look after the store.",
    {
        "verify": "Check everything that is stored, and say what is whole.",
        "backup": "Copy the store to a file, also while it is in use.",
        "restore": "Put a backup in the place of the store.",
        "copy": "Copy all of a store into another one, again if interrupted.",
        "stats": "Count what is kept and say what space it takes.",
        "vacuum": "Give the space of what was deleted back to the disk.",
    },
)
_group(
    "coach",
    "coach",
    "Run a strategy whose questions you answer.",
    {
        "start": "Start a run whose questions you answer.",
        "answer": "Answer questions of a run.",
        "status": "Say where a run stands and what it asks.",
        "list": "List runs, those that wait for your answers first.",
        "cancel": "End a run; it can be resumed.",
        "resume": "Take a run up again, whoever answered its questions so far.",
        "fork": "Start a run from a point of another.",
    },
)
_group(
    "tools",
    "tools",
    "List the tools, and run code in a sandbox.",
    {
        "list": "List the tools and the sandboxes.",
        "run": "Run code in a sandbox.",
    },
)
_group(
    "completion",
    "completion",
    "Have the Tab key complete commands, options, strategies, runs and sessions.",
    {
        "install": "Put the script for your shell where it looks for it.",
        "show": "Print the script for a shell.",
    },
)


def call(arguments: list[str]) -> int:
    """Run one command and return its exit code.

    Raises:
        UsageError: There is no such command, or it does not take these arguments.
    """
    try:
        code = app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as error:
        raise UsageError(f"{inert(str(error)).strip()} {_usage(error.command_chain or ())}") from None
    return code if isinstance(code, int) else 0


def _usage(command: Sequence[str]) -> str:
    """Return what a command takes, in a sentence."""
    from cyclopts.help import format_usage

    _, apps, _ = app.parse_commands(list(command))
    usage = str(format_usage(app, list(command), execution_path=apps)).strip()
    return f"Usage: {usage}; --help says more."
