"""The supported agents, from `agents.toml`: where each agent keeps its files, and how it writes a server entry."""

from __future__ import annotations

import os
import platform
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
from ...system.plugins import EXTRAS, has_extra, read_origin
from ...text import did_you_mean, find_named

NAME = "reasonry"
"""The default name of Reasonry's entry in an agent's file."""
_UV_PARTS = {"archive-v0", "environments-v2", "builds-v0"}
"""Folders of uv's cache that hold the environments of `uvx`."""


class EntryShape(Struct, frozen=True, forbid_unknown_fields=True):
    """How an agent's file describes an MCP server: the keys of the server's entry.

    Args:
        args: The key of the arguments. Empty if the member `command` is one list of the command and its arguments.
        fixed: Additional members of each entry. The value `{name}` stands for the name of the entry.
    """

    command: str = "command"
    args: str = "args"
    env: str = "env"
    fixed: Mapping[str, Any] = {}


class Agent(Struct, frozen=True, forbid_unknown_fields=True):
    """A program that starts MCP servers.

    Args:
        title: The name that is shown to people.
        places: The possible paths of the user's configuration file, by operating system.
        keys: The keys that lead to the servers in the configuration file, outermost first.
        signs: Paths that show that the agent is installed.
        programs: Commands on PATH that show that the agent is installed.
        skills: The user's folder of skills, if the agent has skills.
        native: The agent's own command that adds a server. `{name}` and `{command}` are placeholders.
        environment: The environment variables that the agent passes to its servers: `all` (all variables of the shell),
            `few` (some of these variables) or `desktop` (the agent is a desktop program that no shell starts).
    """

    name: str
    title: str
    places: Mapping[str, tuple[str, ...]]
    keys: tuple[str, ...] = ("mcpServers",)
    format: Literal["json", "toml", "yaml"] = "json"
    shape: EntryShape = EntryShape()
    signs: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    native: str = ""
    environment: Literal["all", "few", "desktop"] = "all"


_TABLE = (resources.files(__package__ or "") / "agents.toml").read_text("utf-8")
AGENTS = msgspec.convert(tomllib.loads(_TABLE)["agents"], tuple[Agent, ...])


def find_agent(name: str) -> Agent:
    """Find an agent by its name or title.

    Raises:
        NotFoundError: The agent is unknown. The error's `choices` lists the names.
    """
    named = {word: agent for agent in AGENTS for word in (agent.name, agent.title)}
    if (found := find_named(name, named)) is not None:
        return found
    names = [agent.name for agent in AGENTS]
    near = did_you_mean(name, names, "The agents")
    raise NotFoundError(f"there is no agent {name[:60]!r}.{near}", choices=names)


class Machine(Struct, frozen=True):
    """The computer, the user and the current folder, which together determine where agents keep their files.

    Args:
        system: `Linux`, `Darwin` or `Windows`, as `platform.system` returns it.
        folder: The current folder.
    """

    system: str
    home: Path
    environ: Mapping[str, str]
    folder: Path

    @staticmethod
    def here() -> Machine:
        """Describe this machine, its user and the current folder.

        Raises:
            UsageError: The user has no home folder, or the current folder no longer exists.
        """
        try:
            return Machine(platform.system(), Path.home(), dict(os.environ), Path.cwd())
        except (RuntimeError, OSError) as error:
            message = f"this has to be run by a user with a home, in a folder that is there: {error}"
            raise UsageError(message) from None

    def folders(self) -> dict[str, Path]:
        """Map variable names, such as `home`, to folders. The paths in `agents.toml` contain these variables."""
        home, names = self.home, ("XDG_CONFIG_HOME", "APPDATA", "LOCALAPPDATA")
        paths = {name: Path(self.environ.get(name, "").strip()) for name in names}
        absolute = {name: path for name, path in paths.items() if path.is_absolute()}
        xdg = absolute.get("XDG_CONFIG_HOME", home / ".config")
        roaming = absolute.get("APPDATA", home / "AppData" / "Roaming")
        local = absolute.get("LOCALAPPDATA", home / "AppData" / "Local")
        support = home / "Library" / "Application Support"
        config = {"Darwin": support, "Windows": roaming}.get(self.system, xdg)
        return {"home": home, "config": config, "local": local, "xdg": xdg}

    def find(self, places: Iterable[str]) -> Path:
        """Choose one of the possible paths in `places`, by the rules at the top of `agents.toml`."""
        found = list(self._candidates(places))
        return next((path for path, is_certain in found if is_certain or path.is_file()), found[0][0])

    def has(self, agent: Agent) -> bool:
        """Whether an agent is installed: a path in `signs` exists, or a program in `programs` is on PATH."""
        path = self.environ.get("PATH", "")
        has_trace = any(sign.exists() for sign, _ in self._candidates(agent.signs))
        return has_trace or any(shutil.which(name, path=path) for name in agent.programs)

    def agents(self) -> list[Agent]:
        """Return the installed agents."""
        return [agent for agent in AGENTS if self.has(agent)]

    def config_file(self, agent: Agent) -> Path:
        """Return the path of the file in which an agent lists its MCP servers."""
        return self.find(agent.places.get(self.system) or agent.places.get("*") or agent.places["Linux"])

    def skills_folder(self, agent: Agent) -> Path | None:
        """Return the folder of an agent's skills, or None if the agent has no skills."""
        return self.find(agent.skills) if agent.skills else None

    def _candidates(self, places: Iterable[str]) -> Iterator[tuple[Path, bool]]:
        """Yield each possible path with a flag. `find` may choose a flagged path even if no file exists there."""
        folders = self.folders()
        for place in places:
            folder, _, path = place.partition("/")
            if folder.startswith("$"):
                if value := self.environ.get(folder[1:], "").strip():
                    yield Path(value, path).expanduser(), True
                continue
            start, star, rest = path.partition("*")
            root = folders[folder.strip("{}")]
            if not star:
                yield root / path, False
            for found in sorted(root.glob(start + star)) if star else ():
                yield found / rest.lstrip("/"), True


# -- how an agent starts this installation: the agent's PATH and current folder differ from the user's


class Launch(Struct, frozen=True):
    """The command that starts an MCP server, with its arguments and the environment variables to add."""

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}

    def entry(self, shape: EntryShape, name: str) -> dict[str, Any]:
        """Return the server entry for this command, with the keys that the agent's file uses."""
        fixed = {key: name if value == "{name}" else value for key, value in shape.fixed.items()}
        apart = {shape.command: self.command, shape.args: list(self.args)}
        command = apart if shape.args else {shape.command: [self.command, *self.args]}
        return {**fixed, **command, **({shape.env: dict(self.env)} if self.env else {})}


def read_launch(entry: Any, shape: EntryShape) -> Launch | None:
    """Return the command in an entry of an agent's file. Return None if the entry has no valid command."""
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
    """Whether a command starts Reasonry, as a program or as a Python module."""
    words = (launch.command, *launch.args)
    # On Windows, both kinds of slashes divide a path.
    return any(PureWindowsPath(word).stem == NAME or word.startswith("reasonry.") for word in words)


def this_installation() -> Launch:
    """Return the command with which an agent starts the MCP server of this installation."""
    # `uvx` is in the folder of the `uv` that started this process, or on PATH.
    beside = [str(Path(uv).parent)] if (uv := os.environ.get("UV")) else []
    uvx = shutil.which("uvx", path=os.pathsep.join([*beside, *os.get_exec_path()]))
    if uvx is not None and _UV_PARTS & set(Path(sys.prefix).parts):
        return Launch(str(Path(uvx).absolute()), (*_uvx_source(), "reasonry", "mcp"))
    script, on_path = shutil.which("reasonry", path=sysconfig.get_path("scripts")), shutil.which("reasonry")
    if script is None:
        return Launch(str(Path(sys.executable).absolute()), ("-m", "reasonry", "mcp"))
    if on_path and Path(on_path).samefile(script):
        # PATH may have a tool installer's link, which still works after the environment is replaced.
        script = on_path
    return Launch(str(Path(script).absolute()), ("mcp",))


def _uvx_source() -> Sequence[str]:
    """Return the arguments that tell `uvx` where to get this package with its installed extras."""
    extras = [name for name in EXTRAS if has_extra(name)]
    package = f"reasonry[{','.join(extras)}]" if extras else "reasonry"
    if not (origin := read_origin()):
        return "--from", package
    vcs = origin.get("vcs_info", {})
    kind, revision = vcs.get("vcs"), vcs.get("requested_revision")
    url = f"{kind}+{origin['url']}" if kind else origin["url"]
    return "--from", f"{package} @ {url}{f'@{revision}' if revision else ''}"
