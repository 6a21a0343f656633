"""`reasonry setup`: put Reasonry into the agents that are installed, or take it out."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Any

from msgspec import structs

from ...errors import ReasonryError, UsageError
from ...masking import SECRETS
from .. import present
from ..setup.agent_plan import AgentPlan, SetupRequest, carry_out, plan_setup
from ..setup.agents import AGENTS, NAME, Machine, find_agent
from ..setup.launch import server_options, this_installation
from .arguments import AgentName, Json
from .output import print_document, print_error, print_line, print_lines, print_note

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def setup(
    *agents: AgentName,
    remove: bool = False,
    dry_run: bool = False,
    yes: bool = False,
    project: bool = False,
    force: bool = False,
    no_skills: bool = False,
    name: str = NAME,
    store: str | None = None,
    model: str | None = None,
    models: tuple[str, ...] = (),
    json: Json = False,
) -> int:
    """Put Reasonry into agents: the entry of its MCP server and its skills, where each agent looks for them.

    All else in their files stays, and the file as it was is kept beside it. Without a name it shows what would be done
    for every agent that is installed, and asks.

    Parameters
    ----------
    agents
        claude, claude-desktop, cursor, vscode, codex, gemini, … (docs/setup.md has them all), or all: those installed.
    remove
        Take out what was put in.
    dry_run
        Show what would be done, and do nothing.
    yes
        Do not ask.
    project
        Into the project's own files in the current folder rather than the user's.
    force
        Replace or remove an entry of that name that does not start Reasonry, too.
    no_skills
        Leave the skills out.
    name
        What the entry is called.
    store
        The store of the server, as `reasonry mcp --store` takes it.
    model
        The model of the server, as `reasonry mcp --model` takes it.
    models
        Another model that agents may name, as `reasonry mcp --models` takes it; may be repeated.
    """
    machine = Machine.here()
    if not _NAME.fullmatch(name):
        raise UsageError(f"--name takes letters, digits, - and _, up to 64, got {name[:80]!r}", option="name")
    # A store may be a URL with a password: it is written where it is wanted, and not shown.
    SECRETS.keep_environment({"REASONRY_STORE": store or ""})
    launch = this_installation()
    launch = structs.replace(
        launch, args=(*launch.args, *server_options(store, model, models, machine.project))
    )
    wanted = SetupRequest(launch, name, remove, project, not no_skills, force)
    chosen = machine.agents() if not agents or agents == ("all",) else list(map(find_agent, agents))
    if not chosen:
        names = ", ".join(agent.name for agent in AGENTS)
        raise UsageError(f"no agent was found on this machine; name one: {names}", option="agents")
    plans = [plan_setup(machine, agent, wanted) for agent in {agent.name: agent for agent in chosen}.values()]
    if not json:
        _show(plans)
    is_asked = not agents and not yes
    if dry_run or (is_asked and (json or not _confirm(plans))):
        is_done = False
    else:
        # Of several agents one may have done a part of what another shares with it.
        plans = [_carry_out(plan_setup(machine, plan.agent, wanted), says_so=not json) for plan in plans]
        is_done = True
    return _conclude(plans, is_done=is_done, is_asked=is_asked, as_json=json)


def _carry_out(plan: AgentPlan, *, says_so: bool) -> AgentPlan:
    if plan.error is not None:
        return plan
    try:
        carry_out(plan)
    except ReasonryError as error:
        if says_so:
            print_error(error)
        return structs.replace(plan, state="refused", error=error)
    return plan


def _show(plans: Sequence[AgentPlan]) -> None:
    for plan in plans:
        if plan.error is None:
            print_lines(_describe(plan))
        else:
            print_note(f"{plan.agent.title}: {plan.error.message}")


def _confirm(plans: list[AgentPlan]) -> bool:
    if not any(plan.does_something for plan in plans) or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    try:
        return input("Do this? [y/N] ").strip().casefold() in ("y", "yes")
    except EOFError:
        return False


def _describe(plan: AgentPlan) -> list[str]:
    states = {
        "add": "Reasonry is added",
        "update": "the entry is replaced",
        "remove": "the entry is taken out",
        "unchanged": "Reasonry is set up already",
        "absent": "Reasonry is not set up",
    }
    new = " (a new file)" if plan.change is not None and plan.change.before is None else ""
    lines = [f"{plan.agent.title}: {states[plan.state]}: {plan.file}{new}"]
    lines += [f"  {line}" for line in plan.diff]
    for skill in plan.skills:
        if skill.change.does_something:
            lines.append(f"  skill: {skill.state} {skill.change.path}")
        elif skill.note:
            lines.append(f"  skill: {skill.note}")
    return lines


def _conclude(plans: list[AgentPlan], *, is_done: bool, is_asked: bool, as_json: bool) -> int:
    errors = [plan.error for plan in plans if plan.error is not None]
    if as_json:
        print_document({"done": is_done, "agents": [_document(plan) for plan in plans]})
    elif is_done:
        changed = [plan.agent.title for plan in plans if plan.error is None and plan.does_something]
        if changed:
            print_line(f"Done. Restart {', '.join(changed)}.")
        if any(plan.state in ("add", "update") for plan in plans):
            print_line("`reasonry doctor` starts the server as each agent does.")
    elif not errors and not any(plan.does_something for plan in plans):
        print_line("There is nothing to do.")
    else:
        print_line("Nothing was written." + (" The same command with --yes does it." if is_asked else ""))
    return present.exit_code(errors[0].code) if errors else 0


def _document(plan: AgentPlan) -> dict[str, Any]:
    return {
        "agent": plan.agent.name,
        "title": plan.agent.title,
        "file": None if plan.file is None else str(plan.file),
        "state": plan.state,
        "diff": list(plan.diff),
        "skills": [
            {
                "file": str(skill.change.path),
                "state": skill.state,
                **({"note": skill.note} if skill.note else {}),
            }
            for skill in plan.skills
        ],
        **({} if plan.error is None else present.error_document(plan.error)),
    }
