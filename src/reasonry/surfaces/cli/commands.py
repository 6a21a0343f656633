"""The commands and their help. The module of a command is imported at first use, so that `--help` is fast."""

import re
from collections.abc import Mapping
from functools import cache
from inspect import getdoc
from itertools import takewhile
from pathlib import Path
from typing import Literal, get_args, get_origin

from cyclopts import App, CoercionError, CycloptsError, Parameter
from cyclopts.exceptions import (
    MissingArgumentError,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
)

from ...errors import UsageError
from ...guided.tool_arguments import not_a_choice
from ...text import did_you_mean, escape_unseen
from .output import print_text
from .parameters import WordAfterDashes

COMMANDS: Mapping[str, str] = {
    "solve": "Solve a problem with a strategy and a model.",
    "select": "Compare texts that exist already, and print the best one.",
    "strategies": "Show the strategies, or one of them.",
    "plugins": "List the installed plugins.",
    "doctor": "Check the installation, the default model and agents.",
    "open": "Show a run or a session as a page in the browser.",
    "think": "Record one thought of a session.",
    "compare": "Run strategies on your own problems or a data set, side by side.",
    "datasets": "Show the data sets that compare can take, or problems of one.",
    "setup": "Install Reasonry in your coding agents, or remove it.",
    "mcp": "Serve MCP over standard input and output.",
    "serve": "Serve the page, the API and MCP over HTTP.",
    "submit": "Queue a file of problems for workers or a server.",
    "worker": "Run a worker on a store in PostgreSQL.",
    "runs": "List, show, pause, resume, fork, diff, export and delete runs.",
    "runs list": "List runs, newest first.",
    "runs show": "Show one run: its path, questions, events and result.",
    "runs resume": "Resume a run after a crash, a cancellation, a limit or a failure.",
    "runs fork": "Start a run from a point in another one.",
    "runs replay": "Replay a run without a model, and check that it gives the same result.",
    "runs cancel": "End a run; it can be resumed.",
    "runs delete": "Delete a run that has ended, and its session, for good.",
    "runs pause": "Pause a run in any process; resume continues it.",
    "runs limit": "Raise or lower the limits of a run in any process.",
    "runs diff": "Compare two runs: where they differ, and how each ended.",
    "runs export": "Write a run, a session or a comparison as tests that replay it offline.",
    "sessions": "List, show, search, export, import, delete and pin sessions.",
    "sessions list": "List sessions, last used first.",
    "sessions show": "Draw a session: main line, branches, revisions, stages.",
    "sessions search": "Find thoughts that contain a text.",
    "sessions export": "Export a session as JSON or Markdown.",
    "sessions import": "Import a session.",
    "sessions delete": "Delete a session for good.",
    "sessions pin": "Keep a session from expiring.",
    "store": "Back up, restore, verify, copy or compact the store.",
    "store verify": "Check everything in the store for damage.",
    "store backup": "Copy the store to a file, also while it is in use.",
    "store restore": "Replace the store with a backup.",
    "store copy": "Copy a store into another one; run it again after an interruption.",
    "store stats": "Count the contents of the store and the space they take.",
    "store vacuum": "Return the space of deleted data to the disk.",
    "coach": "Run a strategy whose questions you answer.",
    "coach start": "Start a run whose questions you answer.",
    "coach refute": "Start a run that tries to refute thoughts, a plan or claims.",
    "coach answer": "Answer questions of a run.",
    "coach status": "Show the state of a run and its questions.",
    "coach cancel": "End a run; it can be resumed.",
}
"""Maps each command and each group of commands to the sentence that describes it."""

_ELSEWHERE: Mapping[str, str] = {
    "select": "solve:select",
    "strategies": "inventory:strategies",
    "plugins": "inventory:plugins",
    "datasets": "inventory:datasets",
    "open": "pages:open_",
    "think": "sessions:think",
    "mcp": "servers:mcp",
    "serve": "servers:serve",
    "worker": "servers:worker",
    "coach cancel": "runs:cancel_",
}
"""Maps a command to MODULE:FUNCTION if the module is not named after the command or the command's group."""


@cache
def read_examples() -> dict[str, str]:
    """Map the name of each command to an example of its input and output.

    The examples in `examples.txt` were run one after another on the same store, at a width of 80 columns. A test runs
    them again. In an example, "…" stands for a part that is left out or that varies.
    """
    text = Path(__file__).with_name("examples.txt").read_text("utf-8")
    sections = (part.partition("\n") for part in ("\n" + text).split("\n## ")[1:])
    return {name.strip(): example.strip("\n") for name, _, example in sections}


def _command_line() -> App:
    app = App(
        name="reasonry",
        help="Run published reasoning strategies within hard budgets, resume runs, and see why an answer is given.",
        help_flags=["--help", "-h"],
        # Help shows no default for an option that is off or empty, and no `--no-…` or `--empty-…` forms of options.
        default_parameter=Parameter(negative=(), show_default=lambda value: value or None),
    )
    app.register_install_completion_command(help="Have your shell complete commands and options.")
    groups = {command.split()[0] for command in COMMANDS if " " in command}
    for command, help in COMMANDS.items():
        group, _, name = command.rpartition(" ")
        if command in groups:
            app.command(App(name=name, help=help))
            continue
        place = _ELSEWHERE.get(command) or (f"{group}:{name}_" if group else f"{name}:{name}")
        (app[group] if group else app).command(f"reasonry.surfaces.cli.{place}", name=name, help=help)
    return app


app = _command_line()


def call(arguments: list[str]) -> int:
    """Run a command and return its exit code. If the user asks for help, print an example at the end."""
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:], "--help"]
    words = [*takewhile(lambda word: word != "--", arguments)]
    arguments = [*words, *map(WordAfterDashes, arguments[len(words) :])]
    asks_help = not {"--help", "-h"}.isdisjoint(words)
    command = complete_help(arguments) if asks_help else ""
    try:
        code = app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as error:
        raise _usage_error(error) from None
    if asks_help and (example := read_examples().get(command)):
        print_text(f"Example:\n\n{example}")
    return code if isinstance(code, int) else 0


def complete_help(arguments: list[str]) -> str:
    """Add a command's long description to its help, and return the command's name. `arguments` contains the name."""
    command, apps, _ = app.parse_commands([*takewhile(lambda word: not word.startswith("-"), arguments)])
    docstring = (getdoc(apps[-1].default_command) or "").partition("\n\nArgs:")[0]
    described = docstring.partition("\n\nParameters\n---")[0].partition("\n\n")[2]
    if described and described not in apps[-1].help:
        apps[-1].help += f"\n\n{described}"
    return " ".join(command)


def _usage_error(error: CycloptsError) -> UsageError:
    """Convert a parser's error to a `UsageError` that helps the user to correct the command."""
    from cyclopts.help import format_usage

    if isinstance(error, CoercionError) and error.token and get_origin(error.target_type) is Literal:
        name = (error.token.keyword or (error.argument.name if error.argument else "")).lstrip("-")
        return not_a_choice(name.replace("-", "_"), error.token.value, get_args(error.target_type))
    command, unused = list(error.command_chain or ()), list(error.unused_tokens or ())
    _, apps, _ = app.parse_commands(command)
    if isinstance(error, UnknownCommandError):
        fault = _unknown_command(unused[0], command, apps[-1])
    elif isinstance(error, UnknownOptionError):
        written = error.token.keyword or error.token.value
        fault = _unknown_option(written.partition("=")[0], command, apps[-1])
    elif isinstance(error, MissingArgumentError) and error.argument:
        fault = f"{error.keyword or error.argument.name} is missing."
    elif isinstance(error, UnusedCliTokensError) and unused:
        quote = "; put the problem in quotes" * (len(unused) > 1)
        fault = f"unexpected argument {' '.join(unused)[:100]!r}{quote}."
    else:
        fault = str(error).strip().replace("Must be >= ", "It must be at least ")
        fault = fault[:1].lower() + fault[1:].replace("Must be <= ", "It must be at most ")
    usage = str(format_usage(app, command, execution_path=apps)).strip()
    return UsageError(f"{escape_unseen(fault)} Usage: {usage}; --help says more.")


def _unknown_command(written: str, group: list[str], app: App) -> str:
    names = [name for name in app if name[0] != "-"]
    # A word in a command's description suggests the command: `runs compare` suggests `runs diff`.
    described = {name: COMMANDS.get(" ".join([*group, name]), "").lower() for name in names}
    named = [name for name in names if written.lower() in re.findall(r"\w+", described[name])]
    near = f" Did you mean {' or '.join(named)}?" if named else did_you_mean(written, names, "Commands")
    return f"unknown command {written[:100]!r}.{near}"


def _unknown_option(written: str, command: list[str], app: App) -> str:
    from .settings import RunSettings

    if command[:1] == ["coach"] and written[2:].replace("-", "_") in vars(RunSettings()):
        return f"a coached run takes no {written}: you answer its questions. `reasonry solve` asks a model."
    arguments = app.assemble_argument_collection() if app.default_command else ()
    names = [name for each in arguments for name in each.names if name[:2] == "--"]
    if written in names:
        return f"{written} stands after --, where no option is read; put it before."
    near = did_you_mean(written, names) or " A text that begins with - goes after --."
    is_file = written in ("-f", "-i") or "file" in written or "input" in written
    if is_file and any("PROBLEM" in each.names for each in arguments):
        near = f" For a problem in a file, write `reasonry {' '.join(command)} - < FILE`; for a file of problems, "
        near += "`reasonry submit FILE`; for a document, --context FILE."
    return f"unknown option {written[:100]}.{near}"
