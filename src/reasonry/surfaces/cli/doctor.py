"""`reasonry doctor`: what is installed, what would be used and why, and whether Reasonry works in the agents."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
from typing import Annotated, Any

from ...app.installed import describe_plugins
from ...app.wiring import App
from ...errors import ReasonryError
from ...extras import EXTRAS, has_extra, install_hint
from ...masking import SECRETS
from .. import present
from ..setup.agent_plan import compare_skills
from ..setup.agents import Agent, Machine
from ..setup.checks import DEADLINE_S, BrokenFile, ServerCheck, SetUpEntry, find_entries, try_entries
from .arguments import ABOVE_0
from .output import print_lines
from .settings import Common, run_async

_NOT_WORKING = 1

_FOR: Mapping[str, str] = {
    "anthropic": "models of Anthropic",
    "documents": "PDF files as documents",
    "google": "models of Google",
    "gym": "problems of reasoning-gym for compare",
    "logic": "claims checked with Z3",
    "mcp": "tools of other MCP servers, and MCP over HTTP",
    "providers": "models of other providers",
    "sandbox": "code in the Monty sandbox",
    "server": "the page, the API and stores in PostgreSQL",
    "telemetry": "traces for OpenTelemetry",
}
"""What each extra is for."""


def doctor(
    problem: str = "Use 4, 9, 10 and 13 to make 24",
    /,
    *,
    deadline: Annotated[float, ABOVE_0] = DEADLINE_S,
    common: Common = Common(),
) -> int:
    """Check the installation, the store, the models, the sandboxes and the agents, each fault with its remedy.

    In each agent that has Reasonry, its server is started as that agent does. The exit code is 0 only if the store can
    be used and each entry works.

    Parameters
    ----------
    problem
        A problem to choose a model for.
    deadline
        Seconds that a server may take to answer.
    """
    from ...models.choose import default_model, describe_models
    from ...tools.sandbox import describe_sandboxes

    async def look(app: App) -> dict[str, Any]:
        await app.store.runs(limit=1)
        return {"name": app.store.name, "durable": app.store.durable}

    document: dict[str, Any] = {
        "reasonry": metadata.version("reasonry"),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "installation": sys.prefix,
        "store": _try(lambda: common.do(look)),
        "model": _try(lambda: dict(zip(("name", "why"), default_model(problem, os.environ), strict=True))),
        "models": describe_models(),
        "sandboxes": run_async(describe_sandboxes()),
        "extras": _extras(),
        "plugins": describe_plugins(),
        "agents": _agents(Machine.here(), deadline),
    }
    document["problems"] = list(_problems(document))
    common.show(document, lambda: print_lines(_lines(document)))
    if not document["store"]["ok"]:
        return present.EXIT_CODES["store_unavailable"]
    return _NOT_WORKING if document["problems"] else 0


def _try(look: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
    try:
        return {"ok": True, **look()}
    except ReasonryError as error:
        return {"ok": False, "error": error.document()}


def _extras() -> list[dict[str, Any]]:
    return [
        {"name": name, "installed": has_extra(name), "for": _FOR[name], "install": install_hint(name)}
        for name in EXTRAS
    ]


def _agents(machine: Machine, deadline_s: float) -> list[dict[str, Any]]:
    """Return the agents that are here, each with its entries, tried out."""
    found = find_entries(machine)
    entries = [entry for entry in found if isinstance(entry, SetUpEntry)]
    for launch in (entry.launch for entry in entries if entry.launch is not None):
        SECRETS.keep_environment(
            {**launch.env, **{str(place): word for place, word in enumerate(launch.args)}}
        )
    checks = run_async(try_entries(machine, entries, deadline_s))
    installed = {agent.name for agent in machine.agents()}
    here = {agent.name: agent for agent in machine.agents()} | {part.agent.name: part.agent for part in found}
    return [
        {
            "agent": name,
            "title": agent.title,
            "installed": name in installed,
            "skills": _skills(machine, agent),
            "entries": [
                _entry_row(entry, check)
                for entry, check in zip(entries, checks, strict=True)
                if entry.agent.name == name
            ],
            "unreadable": [
                {"file": str(part.file), "message": part.message}
                for part in found
                if isinstance(part, BrokenFile) and part.agent.name == name
            ],
        }
        for name, agent in here.items()
    ]


def _skills(machine: Machine, agent: Agent) -> str | None:
    folder = machine.skills_folder(agent, for_project=False)
    try:
        return None if folder is None else compare_skills(folder)
    except ReasonryError as error:
        return error.message


def _entry_row(entry: SetUpEntry, check: ServerCheck | None) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": entry.name,
        "file": str(entry.file),
        "scope": "project" if entry.for_project else "user",
    }
    if check is None:
        return row | {"ok": None, "note": entry.note}
    if check.problem:
        stderr = [SECRETS.mask(line) for line in check.stderr]
        return row | {"ok": False, "problem": check.problem, "remedy": check.remedy, "stderr": stderr}
    works = {"ms": check.ms, "server": check.server, "protocol": check.protocol, "tools": list(check.tools)}
    return row | {"ok": True, **works}


def _problems(document: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """Yield the faults of what is set up or should work, each with its remedy."""
    if not document["store"]["ok"]:
        remedy = "name another with --store or REASONRY_STORE, or put right what the message says"
        yield _problem("store", document["store"]["error"]["message"], remedy)
    for row in document["plugins"]:
        if not row["loaded"]:
            remedy = "install another version of it, or take it out; REASONRY_PLUGINS=off leaves all out"
            yield _problem(row["name"], f"the plugin cannot be loaded: {row['why']}", remedy)
    for agent in document["agents"]:
        title = agent["title"]
        for file in agent["unreadable"]:
            why = f"{file['file']} cannot be read: {file['message']}"
            yield _problem(title, why, f"put the file right; {title} cannot read it either")
        for row in agent["entries"]:
            if row["ok"] is False:
                why = f"{row['name']!r} in {row['file']} does not work: {row['problem']}"
                yield _problem(title, why, row["remedy"])


def _problem(about: str, problem: str, remedy: str) -> dict[str, str]:
    return {"about": about, "problem": problem, "remedy": remedy}


def _lines(document: dict[str, Any]) -> Iterator[str]:
    yield from _about_installation(document)
    yield from _about_models(document["models"])
    for row in document["sandboxes"]:
        reason = row.get("reason", "")
        yield f"The sandbox {row['name']} works." if row["usable"] else reason[:1].upper() + reason[1:]
    missing = [extra for extra in document["extras"] if not extra["installed"]]
    if missing:
        yield f"Optional parts that are not installed; to add one: {missing[0]['install']}"
    yield from (f"  {extra['name']}: {extra['for']}" for extra in missing)
    loaded = [row["name"] for row in document["plugins"] if row["loaded"]]
    if loaded:
        yield f"Installed packages bring {', '.join(loaded)}."
    yield from _about_agents(document["agents"])
    for problem in document["problems"]:
        yield f"\nPROBLEM: {problem['about']}: {problem['problem']}\n  Remedy: {problem['remedy']}."
    count = len(document["problems"])
    yield f"\n{present.count_of(count, 'problem')} to put right." if count else "\nNo problem was found."


def _about_installation(document: Mapping[str, Any]) -> Iterator[str]:
    yield (
        f"Reasonry {document['reasonry']} on Python {document['python']}, {document['system']}, "
        f"in {document['installation']}."
    )
    store, model = document["store"], document["model"]
    if store["ok"]:
        kept = "" if store["durable"] else ", which forgets everything at exit"
        yield f"The store is {store['name']}{kept}."
    if model["ok"] and model["name"] == "offline":
        yield "Without --model, only number puzzles can be solved: no key is set and no Ollama runs."
    elif model["ok"]:
        yield f"Without --model, a run uses {model['name']}: {model['why']}."
    else:
        yield f"Without --model, a run has no model: {model['error']['message']}."


def _about_models(rows: list[dict[str, Any]]) -> Iterator[str]:
    ready = {row["model"] for row in rows if row["ready"]} - {"PROVIDER:NAME"}
    yield f"Models ready to use: {', '.join(row['model'] for row in rows if row['model'] in ready)}."
    for row in rows:
        if row["model"] not in ready:
            yield f"  {row['model']}: {row['note']}"


def _about_agents(agents: list[dict[str, Any]]) -> Iterator[str]:
    if not agents:
        yield "No agent was found on this machine that Reasonry could be set up in."
    for agent in agents:
        here = f"{agent['title']} is {'' if agent['installed'] else 'not '}installed"
        if not agent["entries"] and not agent["unreadable"]:
            yield f"{here}; Reasonry is not set up in it: reasonry setup {agent['agent']}"
        for row in agent["entries"]:
            yield f"{here}; {row['name']!r} of {row['file']} {_about_entry(row)}"
            yield from (f"    {line}" for line in row.get("stderr", ()))
        if agent["skills"] not in (None, "current") and any(
            row["scope"] == "user" for row in agent["entries"]
        ):
            states = {"missing": "not installed", "different": "not those of this version"}
            why = states.get(agent["skills"], agent["skills"])
            yield f"  Its skills are {why}: reasonry setup {agent['agent']}"
        for file in agent["unreadable"]:
            yield f"{here}; {file['file']} cannot be read."


def _about_entry(row: dict[str, Any]) -> str:
    if row["ok"] is None:
        return f"was not tried: {row['note']}."
    if not row["ok"]:
        return "does NOT work; on standard error it said:" if row["stderr"] else "does NOT work."
    return (
        f"works: {row['server']} answered in {row['ms']} ms, protocol {row['protocol']}, "
        f"tools {', '.join(row['tools'])}."
    )
