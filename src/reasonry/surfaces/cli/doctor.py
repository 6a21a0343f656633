"""`reasonry doctor`: what is installed, what would be used and why, and whether Reasonry works in the agents."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
from operator import itemgetter
from typing import Any

from ...app.installed import describe_plugins
from ...app.wiring import App
from ...errors import ReasonryError
from ...extras import has_extra, install_hint
from ...masking import SECRETS
from .. import present
from ..setup.agent_plan import compare_skills
from ..setup.agents import Agent, Machine
from ..setup.checks import SetUpEntry, find_entries, try_entries
from .output import Column, print_line, print_table
from .settings import Common, run_async

_NOT_WORKING = 1
_PARTS = (
    Column("PART", itemgetter(0)),
    Column("STATE", itemgetter(1)),
    Column("ABOUT", itemgetter(2), narrowest=30, wraps=True),
)

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
"""The purpose of each extra."""


def doctor(problem: str = "Use 4, 9, 10 and 13 to make 24", /, *, common: Common = Common()) -> int:
    """Check the installation, the store, the models, the sandboxes and the agents, each fault with its remedy.

    In each agent that has Reasonry, its server is started as that agent does. The exit code is 0 only if the store can
    be used and each entry works.

    Args:
        problem: A problem to choose a model for.
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
        "extras": [
            {"name": name, "installed": has_extra(name), "for": purpose, "install": install_hint(name)}
            for name, purpose in _FOR.items()
        ],
        "plugins": describe_plugins(),
        "agents": _agents(Machine.here()),
    }
    members = ("about", "problem", "remedy")
    document["problems"] = [dict(zip(members, row, strict=True)) for row in _problems(document)]
    common.show(document, lambda: _show(document))
    if not document["store"]["ok"]:
        return present.EXIT_CODES["store_unavailable"]
    return _NOT_WORKING if document["problems"] else 0


def _try(look: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
    try:
        return {"ok": True, **look()}
    except ReasonryError as error:
        return {"ok": False, "error": error.document()}


def _agents(machine: Machine) -> list[dict[str, Any]]:
    """Return the agents that are here, each with its entries, tried out."""
    found, installed = find_entries(machine), machine.agents()
    entries = [entry for entry in found if not entry.fault]
    for launch in (entry.launch for entry in entries if entry.launch is not None):
        words = {str(place): word for place, word in enumerate(launch.args)}
        SECRETS.keep_environment({**launch.env, **words})
    results = list(zip(entries, run_async(try_entries(machine, entries)), strict=True))
    here = {agent.name: agent for agent in (*installed, *(part.agent for part in found))}
    return [
        {
            "agent": agent.name,
            "title": agent.title,
            "installed": agent in installed,
            "skills": _skills(machine, agent),
            "entries": [_entry_row(entry, check) for entry, check in results if entry.agent == agent],
            "unreadable": [
                {"file": str(entry.file), "message": entry.fault}
                for entry in found
                if entry.fault and entry.agent == agent
            ],
        }
        for agent in here.values()
    ]


def _skills(machine: Machine, agent: Agent) -> str | None:
    folder = machine.skills_folder(agent, for_project=False)
    try:
        return None if folder is None else compare_skills(folder)
    except ReasonryError as error:
        return error.message


def _entry_row(entry: SetUpEntry, check: Mapping[str, Any]) -> dict[str, Any]:
    scope, ok = (
        "project" if entry.for_project else "user",
        None if "note" in check else "problem" not in check,
    )
    return {"name": entry.name, "file": str(entry.file), "scope": scope, "ok": ok, **check}


def _problems(document: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield the faults of what is set up or should work: its name, the problem and the remedy."""
    if not document["store"]["ok"]:
        remedy = "name another with --store or REASONRY_STORE, or correct what the message says"
        yield "store", document["store"]["error"]["message"], remedy
    for row in document["plugins"]:
        if not row["loaded"]:
            remedy = "install another version of it, or take it out; REASONRY_PLUGINS=off leaves all out"
            yield row["name"], f"the plugin cannot be loaded: {row['why']}", remedy
    for agent in document["agents"]:
        title = agent["title"]
        for file in agent["unreadable"]:
            why = f"{file['file']} cannot be read: {file['message']}"
            yield title, why, f"put the file right; {title} cannot read it either"
        for row in agent["entries"]:
            if row["ok"] is False:
                stderr = " / ".join(row.get("stderr", ()))
                why = f"{row['name']!r} in {row['file']} does not work: {row['problem']}"
                why += f"; on standard error it said: {stderr}" if stderr else ""
                yield title, why, row["remedy"]


def _show(document: Mapping[str, Any]) -> None:
    print_table(_PARTS, _rows(document))
    for problem in document["problems"]:
        print_line(f"\nPROBLEM: {problem['about']}: {problem['problem']}\n  Remedy: {problem['remedy']}.")
    count = len(document["problems"])
    print_line(f"\n{present.count_of(count, 'problem')} to fix." if count else "\nNo problem was found.")


def _rows(document: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield each part that was looked at, its state, and what there is to say about it."""
    about = f"Python {document['python']}, {document['system']}, in {document['installation']}"
    yield "Reasonry", document["reasonry"], about
    store, model = document["store"], document["model"]
    if store["ok"]:
        yield "store", "usable", store["name"] + ("" if store["durable"] else ", which forgets all at exit")
    why = model["why"] if model["ok"] else model["error"]["message"]
    if model.get("name") == "offline":
        why = "number puzzles alone: no key is set and no Ollama runs"
    yield "without --model", model.get("name", "none"), why
    for row in document["models"]:
        yield f"model {row['model']}", "ready" if row["ready"] else "not ready", row["note"]
    for row in document["sandboxes"]:
        why = row.get("reason", "").removeprefix(f"the sandbox {row['name']} cannot be used: ")
        yield f"sandbox {row['name']}", "usable" if row["usable"] else "not usable", why
    missing = [f"{row['name']} ({row['for']})" for row in document["extras"] if not row["installed"]]
    if missing:
        about = f"{', '.join(missing)}; to install one: {install_hint('NAME')}"
        yield "optional parts", "not installed", about
    yield from ((f"plugin {row['name']}", "loaded", "") for row in document["plugins"] if row["loaded"])
    for agent in document["agents"]:
        yield from _agent_rows(agent)
    if not document["agents"]:
        yield "agents", "none", "no agent was found on this machine that Reasonry could be set up in"


def _agent_rows(agent: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    title, entries = agent["title"], agent["entries"]
    if not entries and not agent["unreadable"]:
        yield title, "not set up", f"reasonry setup {agent['agent']}"
    for row in entries:
        state = {True: "works", False: "does not work", None: "not tried"}[row["ok"]]
        about = f"{row['name']!r} of {row['file']}"
        if row["ok"]:
            tools = f"tools {', '.join(row['tools'])}"
            about += f": {row['server']} answered in {row['ms']} ms, protocol {row['protocol']}, {tools}"
        yield title, state, f"{about}: {row['note']}" if "note" in row else about
    if agent["skills"] not in (None, "current") and any(row["scope"] == "user" for row in entries):
        yield f"{title}, skills", agent["skills"], f"reasonry setup {agent['agent']}"
