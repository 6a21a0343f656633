"""`reasonry doctor`: checks the installation, explains the default model, and tests the MCP server in each agent."""

import os
import platform
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
from typing import Any, NamedTuple

from ...app.app import App
from ...app.installed import describe_plugins
from ...errors import ReasonryError
from ...models.choose import default_model
from ...system.masking import SECRETS
from ...system.plugins import EXTRAS, has_extra, install_hint
from ...tools.sandbox import describe_sandboxes
from .. import present
from ..setup.agent_plan import compare_skills
from ..setup.agents import Agent, Machine
from ..setup.checks import find_entries, try_entries
from .output import columns_of, print_line, print_table
from .settings import Common, run_async


class _Part(NamedTuple):
    """The state of a checked item, such as the store or an agent. `remedy` is empty if the item has no fault."""

    part: str
    state: str
    about: str = ""
    remedy: str = ""


def doctor(problem: str = "Use 4, 9, 10 and 13 to make 24", /, *, common: Common = Common()) -> int:
    """Check the installation, the store, the default model, the sandboxes and the agents. Show a remedy for each fault.

    For each agent with an entry for Reasonry, the command starts the MCP server in the same way as the agent. The exit
    code is 0 only if the store can be used, every plugin loads, and no entry has a problem.

    Args:
        problem: The problem for which `solve` would choose the default model.
    """

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
        "sandboxes": run_async(describe_sandboxes()),
        "extras": [
            {"name": name, "installed": has_extra(name), "for": purpose, "install": install_hint(name)}
            for name, (purpose, _) in EXTRAS.items()
        ],
        "plugins": describe_plugins(),
        "agents": _agents(Machine.here()),
    }
    parts = [*_look_over(document)]
    faults = [part for part in parts if part.remedy]
    document["problems"] = [
        {"about": fault.part, "problem": fault.about, "remedy": fault.remedy} for fault in faults
    ]

    def draw() -> None:
        shown = (part._asdict() for part in parts if not part.remedy)
        print_table(columns_of("part", "state", "about"), shown)
        for fault in faults:
            print_line(f"\nPROBLEM: {fault.part}: {fault.about}\n  Remedy: {fault.remedy}.")
        found = f"{present.count_of(len(faults), 'problem')} to fix." if faults else "No problem was found."
        print_line("", found)

    common.show(document, draw)
    if not document["store"]["ok"]:
        return present.EXIT_CODES["store_unavailable"]
    return 1 if faults else 0


def _try(look: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
    try:
        return {"ok": True, **look()}
    except ReasonryError as error:
        return {"ok": False, "error": error.document()}


def _agents(machine: Machine) -> list[dict[str, Any]]:
    """Find Reasonry in the agents' files, and test each MCP server found. Return a document for each agent."""
    entries, installed = find_entries(machine), machine.agents()
    for launch in (entry.launch for entry in entries if entry.launch is not None):
        words = {str(place): word for place, word in enumerate(launch.args)}
        SECRETS.keep_environment({**launch.env, **words})
    tried = defaultdict[str, list[dict[str, Any]]](list)
    for entry, check in zip(entries, run_async(try_entries(machine, entries)), strict=True):
        ok = None if "note" in check else "problem" not in check
        tried[entry.agent.name].append({"name": entry.name, "file": str(entry.file), "ok": ok, **check})
    here = {agent.name: agent for agent in (*installed, *(entry.agent for entry in entries))}
    return [
        {
            "agent": agent.name,
            "title": agent.title,
            "installed": agent in installed,
            "skills": _skills(machine, agent),
            "entries": tried[agent.name],
        }
        for agent in here.values()
    ]


def _skills(machine: Machine, agent: Agent) -> str | None:
    folder = machine.skills_folder(agent)
    try:
        return None if folder is None else compare_skills(folder)
    except ReasonryError as error:
        return error.message


def _look_over(document: Mapping[str, Any]) -> Iterator[_Part]:
    about = f"Python {document['python']}, {document['system']}, in {document['installation']}"
    yield _Part("Reasonry", document["reasonry"], about)
    store, model = document["store"], document["model"]
    if store["ok"]:
        about = store["name"] + ("" if store["durable"] else ", which forgets all at exit")
        yield _Part("store", "usable", about)
    else:
        remedy = "name another with --store or REASONRY_STORE, or correct what the message says"
        yield _Part("store", "not usable", store["error"]["message"], remedy)
    why = model["why"] if model["ok"] else model["error"]["message"]
    if model.get("name") == "offline":
        why = "number puzzles only (no API key, Ollama not running)"
    yield _Part("default model", model.get("name", "none"), why)
    for row in document["sandboxes"]:
        why = row.get("reason", "").removeprefix(f"the sandbox {row['name']} cannot be used: ")
        yield _Part(f"sandbox {row['name']}", "usable" if row["usable"] else "not usable", why)
    missing = [f"{row['name']} ({row['for']})" for row in document["extras"] if not row["installed"]]
    if missing:
        about = f"{', '.join(missing)}; to install one: {install_hint('NAME')}"
        yield _Part("optional parts", "not installed", about)
    for row in document["plugins"]:
        remedy = "install another version of it, or take it out"
        fault = "" if row["loaded"] else f"it cannot be loaded: {row['why']}"
        yield _Part(f"plugin {row['name']}", "loaded", fault, remedy if fault else "")
    for agent in document["agents"]:
        yield from _look_at_agent(agent)
    if not document["agents"]:
        yield _Part("agents", "none", "no supported agent found")


def _look_at_agent(agent: Mapping[str, Any]) -> Iterator[_Part]:
    title, entries = agent["title"], agent["entries"]
    if not entries:
        yield _Part(title, "not set up", f"reasonry setup {agent['agent']}")
    for row in entries:
        about = f"{row['name']!r} in {row['file']}" if row["name"] else row["file"]
        if row["ok"] is None:
            yield _Part(title, "not tried", f"{about}: {row['note']}")
        elif row["ok"]:
            tools = f"tools {', '.join(row['tools'])}"
            reply = f"{row['server']} answered in {row['ms']} ms, protocol {row['protocol']}, {tools}"
            yield _Part(title, "works", f"{about}: {reply}")
        else:
            stderr = " / ".join(row.get("stderr", ()))
            why = f"{row['problem']}; on standard error it said: {stderr}" if stderr else row["problem"]
            yield _Part(title, "does not work", f"{about}: {why}", row["remedy"])
    if agent["skills"] not in (None, "current") and entries:
        yield _Part(f"{title}, skills", agent["skills"], f"reasonry setup {agent['agent']}")
