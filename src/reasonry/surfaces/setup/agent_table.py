"""The agents that Reasonry can be set up in: the table in `agents.toml`, read once."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib import resources
from typing import Any, Literal

import msgspec
from msgspec import Struct

from ...errors import NotFoundError

NAME = "reasonry"
"""What an entry is called where no other name is given."""


class EntryShape(Struct, frozen=True, forbid_unknown_fields=True):
    """How an agent writes down how a server is started.

    Args:
        args: Empty: the command and its arguments are one list.
        fixed: What else an entry has; `{name}` stands for its name.
    """

    command: str = "command"
    args: str = "args"
    env: str = "env"
    fixed: Mapping[str, Any] = {}


class Agent(Struct, frozen=True, forbid_unknown_fields=True):
    """A program that starts MCP servers.

    Args:
        title: What people call it.
        places: Of the user's own file, by system.
        keys: Under which keys of that file the servers stand.
        signs: Paths that exist where the agent is installed.
        programs: Commands on PATH that exist where the agent is installed.
        project: The file of a project, if there is one; `project_shape` where its entries are others.
        skills: The user's folder of skills, if the agent reads any.
        project_skills: That of a project.
        native: The agent's own command for adding a server; `{name}` and `{command}` are filled in.
        environment: What its servers get: `all` of the shell's, only a `few` variables, or, as a program that no shell
            starts, those of the `desktop`.
    """

    name: str
    title: str
    places: Mapping[str, tuple[str, ...]]
    keys: tuple[str, ...] = ("mcpServers",)
    format: Literal["json", "toml", "yaml"] = "json"
    shape: EntryShape = EntryShape()
    signs: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    project: tuple[str, ...] = ()
    project_shape: EntryShape | None = None
    skills: tuple[str, ...] = ()
    project_skills: str = ".agents/skills"
    native: str = ""
    environment: Literal["all", "few", "desktop"] = "all"

    def entry_shape(self, *, for_project: bool) -> EntryShape:
        """Return how entries are written in the user's file, or in that of a project."""
        return self.project_shape or self.shape if for_project else self.shape


def _read_table() -> tuple[Agent, ...]:
    text = (resources.files(__package__ or "") / "agents.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text)["agents"], tuple[Agent, ...])


AGENTS = _read_table()


def find_agent(name: str) -> Agent:
    """Return the agent of a name or a title.

    Raises:
        NotFoundError: There is none; `choices` has the names.
    """
    wanted = name.strip().casefold().replace(" ", "-").replace("_", "-")
    for agent in AGENTS:
        if wanted in (agent.name, agent.title.casefold().replace(" ", "-")):
            return agent
    names = [agent.name for agent in AGENTS]
    raise NotFoundError(f"no agent is called {name[:60]!r}; there are {', '.join(names)}", choices=names)
