"""The agents that Reasonry can be set up in, from `agents.toml`: where their files are, and how they start a server."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
import sysconfig
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path, PureWindowsPath
from typing import Any, Literal

import msgspec
from msgspec import Struct

from ...errors import NotFoundError, UsageError
from ...extras import EXTRAS, has_extra, read_origin
from ...names import find_named

_VARIABLE = re.compile(r"\$([A-Z_]+)")
NAME = "reasonry"
"""What an entry is called where no other name is given."""
_UV_PARTS = {"archive-v0", "environments-v2", "builds-v0"}
"""Folders of uv's cache in which the environments of `uvx` live until the cache is cleaned."""


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


_TABLE = (resources.files(__package__ or "") / "agents.toml").read_text("utf-8")
AGENTS = msgspec.convert(tomllib.loads(_TABLE)["agents"], tuple[Agent, ...])


def find_agent(name: str) -> Agent:
    """Return the agent of a name or a title.

    Raises:
        NotFoundError: There is none; `choices` has the names.
    """
    named = {word: agent for agent in AGENTS for word in (agent.name, agent.title)}
    if (found := find_named(name, named)) is not None:
        return found
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
            message = f"this has to be run by a user with a home, in a folder that is there: {error}"
            raise UsageError(message) from None

    def folders(self) -> dict[str, Path]:
        """Return the variables of places."""
        home, names = self.home, ("XDG_CONFIG_HOME", "APPDATA", "LOCALAPPDATA")
        paths = {name: Path(self.environ.get(name, "").strip()) for name in names}
        absolute = {name: path for name, path in paths.items() if path.is_absolute()}
        xdg = absolute.get("XDG_CONFIG_HOME", home / ".config")
        roaming = absolute.get("APPDATA", home / "AppData" / "Roaming")
        local = absolute.get("LOCALAPPDATA", home / "AppData" / "Local")
        support = home / "Library" / "Application Support"
        config = {"Darwin": support, "Windows": roaming}.get(self.system, xdg)
        return {"home": home, "config": config, "local": local, "xdg": xdg, "project": self.project}

    def find(self, places: Iterable[str]) -> Path:
        """Return the place to take of several, as the table of agents says."""
        found = list(self._candidates(places))
        return next((path for path, is_certain in found if is_certain or path.is_file()), found[0][0])

    def has(self, agent: Agent) -> bool:
        """Whether an agent is installed: a trace of it is there, or its command is on PATH."""
        path = self.environ.get("PATH", "")
        has_trace = any(sign.exists() for sign, _ in self._candidates(agent.signs))
        return has_trace or any(shutil.which(name, path=path) for name in agent.programs)

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
            if named := _VARIABLE.search(place):
                if value := self.environ.get(named[1], "").strip():
                    yield Path(place.replace(named[0], value)).expanduser(), True
                continue
            folder, _, path = place.partition("/")
            start, star, rest = path.partition("*")
            root = folders[folder.strip("{}")]
            if not star:
                yield root / path, False
            for found in sorted(root.glob(start + star)) if star else ():
                yield found / rest.lstrip("/"), True


# -- how an agent starts this very installation: agents have another PATH and another current folder


class Launch(Struct, frozen=True):
    """A command, its arguments, and what its environment has besides the agent's."""

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}

    def entry(self, shape: EntryShape, name: str) -> dict[str, Any]:
        """Return it as an agent writes it down."""
        fixed = {key: name if value == "{name}" else value for key, value in shape.fixed.items()}
        apart = {shape.command: self.command, shape.args: list(self.args)}
        command = apart if shape.args else {shape.command: [self.command, *self.args]}
        return {**fixed, **command, **({shape.env: dict(self.env)} if self.env else {})}


def read_launch(entry: Any, shape: EntryShape) -> Launch | None:
    """Return how an entry of an agent's file starts its server; None where it is none that starts one."""
    if not isinstance(entry, dict):
        return None
    found: Any = entry.get(shape.command)
    args: Any = entry.get(shape.args) or []
    start: list[Any] = found if isinstance(found, list) and not shape.args else [found]
    words: list[Any] = [*start, *(args if isinstance(args, list) else [None])]
    env: Any = entry.get(shape.env) or {}
    if not words or not all(isinstance(word, str) for word in words) or not isinstance(env, dict):
        return None
    return Launch(words[0], tuple(words[1:]), {str(key): str(value) for key, value in env.items()})


def starts_reasonry(launch: Launch) -> bool:
    """Whether a command, or a word after it, is Reasonry."""
    words = (launch.command, *launch.args)
    # On Windows, both kinds of slashes divide a path.
    return any(PureWindowsPath(word).stem == NAME or word.startswith("reasonry.") for word in words)


def this_installation() -> Launch:
    """Return what starts the MCP server of the installation that is running."""
    # `uvx` stands beside the `uv` that has started this, or on PATH.
    beside = [str(Path(uv).parent)] if (uv := os.environ.get("UV")) else []
    uvx = shutil.which("uvx", path=os.pathsep.join([*beside, *os.get_exec_path()]))
    if uvx is not None and _UV_PARTS & set(Path(sys.prefix).parts):
        return Launch(str(Path(uvx).absolute()), (*_uvx_source(), "reasonry", "mcp"))
    script, on_path = shutil.which("reasonry", path=sysconfig.get_path("scripts")), shutil.which("reasonry")
    if script is None:
        return Launch(str(Path(sys.executable).absolute()), ("-m", "reasonry", "mcp"))
    if on_path and Path(on_path).samefile(script):
        # A link of a tool installer outlives the environment it leads to.
        script = on_path
    return Launch(str(Path(script).absolute()), ("mcp",))


def _uvx_source() -> Sequence[str]:
    """Return from where `uvx` takes the package, with the extras that are here."""
    extras = [name for name in EXTRAS if has_extra(name)]
    package = f"reasonry[{','.join(extras)}]" if extras else "reasonry"
    if not (origin := read_origin()):
        return "--from", package
    vcs = origin.get("vcs_info", {})
    kind, revision = vcs.get("vcs"), vcs.get("requested_revision")
    url = f"{kind}+{origin['url']}" if kind else origin["url"]
    return "--from", f"{package} @ {url}{f'@{revision}' if revision else ''}"
