"""The entries for Reasonry in the files of the agents of this machine, and whether each one works."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from ...errors import ReasonryError
from .agent_table import AGENTS, NAME, Agent
from .config_file import read_config
from .formats import find_entry, read_data
from .launch import Launch, read_launch, starts_reasonry
from .places import Machine
from .server_check import ServerCheck, agent_environ, agent_folder, check_server


class SetUpEntry(Struct, frozen=True):
    """An entry for Reasonry in an agent's file.

    Args:
        launch: None: it starts no server as far as can be read.
        note: Why it is not tried out; empty if it is.
    """

    agent: Agent
    file: Path
    name: str
    for_project: bool
    launch: Launch | None
    folder: Path | None = None
    note: str = ""


class BrokenFile(Struct, frozen=True):
    """A file of an agent that cannot be read."""

    agent: Agent
    file: Path
    message: str


def find_entries(machine: Machine) -> list[SetUpEntry | BrokenFile]:
    """Return every entry for Reasonry, the user's before the project's, and the files that cannot be read."""
    found = list[SetUpEntry | BrokenFile]()
    seen = set[tuple[Path, tuple[str, ...]]]()
    for agent in AGENTS:
        for for_project in (False, True):
            file = machine.config_file(agent, for_project=for_project)
            if file is not None and (file, agent.keys) not in seen:
                seen.add((file, agent.keys))
                found += _entries_of(agent, file, for_project=for_project)
    return found


def _entries_of(agent: Agent, file: Path, *, for_project: bool) -> Iterator[SetUpEntry | BrokenFile]:
    try:
        text = read_config(file)
        servers = find_entry(read_data(agent.format, text or ""), agent.keys)
    except (ReasonryError, ValueError) as error:
        yield BrokenFile(agent, file, str(error))
        return
    for name, entry in servers.items() if isinstance(servers, Mapping) else ():
        launch = read_launch(entry, agent.entry_shape(for_project=for_project))
        if name == NAME or (launch is not None and starts_reasonry(launch)):
            folder = entry.get("cwd") if isinstance(entry, dict) else None
            yield SetUpEntry(
                agent,
                file,
                str(name)[:100],
                for_project,
                launch,
                Path(folder).expanduser() if isinstance(folder, str) else None,
                _why_not_tried(entry, launch),
            )


def _why_not_tried(entry: Any, launch: Launch | None) -> str:
    if isinstance(entry, dict) and (entry.get("disabled") is True or entry.get("enabled") is False):
        return "it is switched off"
    words = () if launch is None else (launch.command, *launch.args, *launch.env.values())
    return "it has variables that only the agent fills in" if any("${" in word for word in words) else ""


async def try_entries(machine: Machine, entries: list[SetUpEntry], deadline_s: float) -> list[ServerCheck]:
    """Start the server of each entry as its agent would, a few side by side."""
    places = asyncio.Semaphore(4)

    async def try_out(entry: SetUpEntry) -> ServerCheck:
        if entry.launch is None:
            return ServerCheck(
                problem="the entry names no command", remedy="take it out, or set it up again with --force"
            )
        async with places:
            environ = agent_environ(entry.agent, machine)
            folder = entry.folder or agent_folder(entry.agent, machine)
            return await check_server(entry.launch, environ, folder, deadline_s=deadline_s)

    return list(await asyncio.gather(*map(try_out, entries)))
