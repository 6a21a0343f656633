"""`reasonry setup`: adds Reasonry to agents, or removes it from them."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import structs

from ...errors import ReasonryError, UsageError
from ...stores import open_store
from ...system.masking import SECRETS
from .. import present
from ..setup.agent_plan import AgentPlan, SetupRequest, plan_setup
from ..setup.agents import AGENTS, NAME, Agent, Machine, find_agent, this_installation
from ..setup.config_file import make_change
from .output import confirm, print_line, print_note
from .settings import Listed, OutputOptions

_EXAMPLE = '"Think this through step by step: which of two plans is safer?"'


def setup(
    *agents: str,
    remove: bool = False,
    dry_run: bool = False,
    yes: bool = False,
    no_skills: bool = False,
    name: str = NAME,
    store: str | None = None,
    model: str | None = None,
    models: tuple[str, ...] = (),
    output: OutputOptions = OutputOptions(),
) -> int:
    """Add Reasonry's MCP server and skills to agents, in the files of each agent.

    The rest of each file is left unchanged, and a backup is kept beside the file. If you name no agent, setup shows the
    changes for every agent that it finds, and asks before it makes the changes.

    Args:
        agents: claude, claude-desktop, cursor, vscode, codex, gemini, … (docs/setup.md lists all names), or all for
            every installed agent.
        remove: Remove Reasonry from the agents.
        dry_run: Show the changes and make none.
        yes: Do not ask for confirmation.
        no_skills: Do not add or remove skills.
        name: The name of Reasonry's entry in the agents' files.
        store: The store of the server, in the format of `reasonry mcp --store`.
        model: The default model of the server, in the format of `reasonry mcp --model`.
        models: Another model that agents may name, in the format of `reasonry mcp --models`; may be repeated.
    """
    machine = Machine.here()
    if not re.fullmatch("[A-Za-z0-9_-]{1,64}", name):
        raise UsageError(f"--name takes letters, digits, - and _, up to 64, got {name[:80]!r}", option="name")
    # A store may be a URL with a password. The password is written to the files of agents, but not shown.
    SECRETS.keep_environment({"REASONRY_STORE": store or ""})
    launch = this_installation()
    options = server_options(store, model, models, machine.folder)
    launch = structs.replace(launch, args=(*launch.args, *options))
    by_name = _find_agents(machine, agents)
    wanted = SetupRequest(launch, name, tuple(by_name), remove, not no_skills)
    plans = [plan_setup(machine, agent, wanted) for agent in by_name.values()]
    if not output.as_data:
        _show(plans, with_diff=dry_run)
    is_asked = not agents and not yes
    may_ask = not output.as_data and any(plan.changes for plan in plans)
    is_done = not dry_run and (not is_asked or (may_ask and confirm("Make these changes?") is True))
    if is_done:
        # Each plan is made again, since agents may share files that an earlier change has already written.
        plans = [
            _carry_out(plan_setup(machine, agent, wanted), silent=output.as_data)
            for agent in by_name.values()
        ]
    errors = [plan.error for plan in plans if plan.error is not None]
    document = {"done": is_done, "agents": [_document(plan) for plan in plans]}
    output.show(document, lambda: _print_end(plans, is_done=is_done, is_asked=is_asked))
    return present.exit_code(errors[0].code) if errors else 0


def _find_agents(machine: Machine, names: Sequence[str]) -> dict[str, Agent]:
    is_named = names and names != ("all",)
    found = map(find_agent, names) if is_named else machine.agents()
    if not (by_name := {agent.name: agent for agent in found}):
        known = ", ".join(agent.name for agent in AGENTS)
        raise UsageError(f"no agent was found on this machine; name one: {known}", option="agents")
    return by_name


def server_options(
    store: str | None, model: str | None, models: Sequence[str], folder: Path
) -> tuple[str, ...]:
    """Check options and return them as arguments of `reasonry mcp`. The store's path becomes absolute."""
    open_store(store)
    Listed(model=model, models=tuple(models)).environ()
    if store not in (None, "memory") and "://" not in store:
        store = str(folder / Path(store.removeprefix("sqlite:")).expanduser())
    options = [("--store", store), ("--model", model), *(("--models", spec) for spec in models)]
    return tuple(word for name, value in options if value is not None for word in (name, value))


def _carry_out(plan: AgentPlan, *, silent: bool) -> AgentPlan:
    try:
        if plan.error is None:
            for change in plan.changes:
                make_change(change)
    except ReasonryError as error:
        if not silent:
            print_note(f"reasonry: {error.message}")
        return structs.replace(plan, state="refused", error=error)
    return plan


_STATES = {
    "add": "+ reasonry in",
    "update": "~ reasonry in",
    "remove": "- reasonry in",
    "unchanged": "already in",
    "absent": "not in",
}


def _show(plans: Sequence[AgentPlan], *, with_diff: bool) -> None:
    """Print a line for each agent, then a line for each skill. A skill that several agents share gets one line."""
    width = max(len(plan.agent.title) for plan in plans)
    for plan in plans:
        title = plan.agent.title.ljust(width)
        if plan.error is not None:
            print_note(f"{title}  failed: {plan.error.message}")
            continue
        change = plan.change
        new = " (a new file)" if change and change.before is None else ""
        new = " (and the file, which is empty then)" if change and change.after is None else new
        print_line(f"{title}  {_STATES[plan.state]} {plan.file}{new}")
        print_line(*(f"  {line}" for line in plan.diff if with_diff))
    for skill in {skill.path: skill for plan in plans for skill in plan.skills}.values():
        if skill.state != "unchanged":
            print_line(f"{'skill'.ljust(width)}  {skill.note or f'{skill.state} {skill.path}'}")


def _print_end(plans: list[AgentPlan], *, is_done: bool, is_asked: bool) -> None:
    changed = [plan for plan in plans if plan.error is None and plan.changes]
    failed = ", ".join(plan.agent.title for plan in plans if plan.error)
    failed = f" Failed: {failed}." if failed else ""
    if not changed:
        print_line(f"Nothing was written.{failed}" if failed else "There is nothing to do.")
    elif not is_done:
        print_line(f"Nothing was written.{' The same command with --yes does it.' * is_asked}{failed}")
    else:
        done = "" if failed else "Done. "
        print_line(f"{done}Restart {', '.join(plan.agent.title for plan in changed)}.{failed}")
        if any(plan.state in ("add", "update") for plan in changed):
            print_line(f"Then ask it, for example: {_EXAMPLE}")
            print_line("`reasonry doctor` checks that the server starts in each agent.")


def _document(plan: AgentPlan) -> dict[str, Any]:
    return {
        "agent": plan.agent.name,
        "title": plan.agent.title,
        "file": str(plan.file),
        "state": plan.state,
        "diff": list(plan.diff),
        "skills": [
            {"file": str(skill.path), "state": skill.state} | ({"note": skill.note} if skill.note else {})
            for skill in plan.skills
        ],
        **({} if plan.error is None else present.error_document(plan.error)),
    }
