"""The agents that Reasonry can be set up in: the table in `agents.toml`, and where their files are on a machine."""

from __future__ import annotations

import os
import platform
import re
import shutil
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from ...errors import NotFoundError, UsageError

_VARIABLE = re.compile(r"\$([A-Z_]+)")
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


class Machine(Struct, frozen=True):
    """What places depend on.

    Args:
        system: `Linux`, `Darwin`, `Windows`, as `platform.system` has it.
        project: The folder of the project, which is the current one.
    """

    system: str
    home: Path
    environ: Mapping[str, str]
    project: Path

    @staticmethod
    def here() -> Machine:
        """Return this machine, its user and the current folder.

        Raises:
            UsageError: The user has no home folder, or the current folder is gone.
        """
        try:
            return Machine(platform.system(), Path.home(), dict(os.environ), Path.cwd())
        except (RuntimeError, OSError) as error:
            raise UsageError(
                f"this has to be run by a user with a home, in a folder that is there: {error}"
            ) from None

    def folders(self) -> dict[str, Path]:
        """Return the variables of places."""
        environ, home = self.environ, self.home
        xdg = _folder(environ, "XDG_CONFIG_HOME", home / ".config")
        config = {
            "Darwin": home / "Library" / "Application Support",
            "Windows": _folder(environ, "APPDATA", home / "AppData" / "Roaming"),
        }.get(self.system, xdg)
        local = _folder(environ, "LOCALAPPDATA", home / "AppData" / "Local")
        return {"home": home, "config": config, "local": local, "xdg": xdg, "project": self.project}

    def find(self, places: Iterable[str]) -> Path:
        """Return the place to take of several, as the table of agents says."""
        found = list(self._candidates(places))
        for path, is_certain in found:
            if is_certain or path.is_file():
                return path
        return found[0][0]

    def has(self, agent: Agent) -> bool:
        """Whether an agent is installed: a trace of it is there, or its command is on PATH."""
        if any(path.exists() for path, _ in self._candidates(agent.signs)):
            return True
        return any(shutil.which(name, path=self.environ.get("PATH", "")) for name in agent.programs)

    def agents(self) -> list[Agent]:
        """Return the agents that are installed."""
        return [agent for agent in AGENTS if self.has(agent)]

    def config_file(self, agent: Agent, *, for_project: bool) -> Path | None:
        """Return where an agent looks for its servers; None if it has no file for that."""
        if for_project:
            return self.find(f"{{project}}/{place}" for place in agent.project) if agent.project else None
        return self.find(agent.places.get(self.system) or agent.places.get("*") or agent.places["Linux"])

    def skills_folder(self, agent: Agent, *, for_project: bool) -> Path | None:
        """Return where an agent looks for its skills; None if it does not."""
        if not agent.skills:
            return None
        return self.project / agent.project_skills if for_project else self.find(agent.skills)

    def _candidates(self, places: Iterable[str]) -> Iterator[tuple[Path, bool]]:
        """Yield each place that counts, and whether it is to be taken even if there is nothing."""
        folders = self.folders()
        for place in places:
            named = _VARIABLE.search(place)
            if named is not None:
                value = self.environ.get(named[1], "").strip()
                if value:
                    yield Path(place.replace(named[0], value)).expanduser(), True
                continue
            first, *rest = place.split("/")
            path = folders[first.strip("{}")]
            if "*" not in place:
                yield path.joinpath(*rest), False
                continue
            star = next(index for index, part in enumerate(rest) if "*" in part)
            for found in sorted(path.joinpath(*rest[:star]).glob(rest[star])):
                yield found.joinpath(*rest[star + 1 :]), True


def _folder(environ: Mapping[str, str], name: str, default: Path) -> Path:
    value = environ.get(name, "").strip()
    return Path(value) if value and Path(value).is_absolute() else default
