"""The supported agents, from `agents.toml`: the places of their files, and the form of a server's entry."""

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
"""The default name of an entry."""
_UV_PARTS = {"archive-v0", "environments-v2", "builds-v0"}
"""Folders of uv's cache that hold the environments of `uvx`."""


class EntryShape(Struct, frozen=True, forbid_unknown_fields=True):
    """The form of a server's entry in an agent's file.

    Args:
        args: The key of the arguments; empty if the command and its arguments are one list.
        fixed: Further members of an entry; `{name}` stands for its name.
    """

    command: str = "command"
    args: str = "args"
    env: str = "env"
    fixed: Mapping[str, Any] = {}


class Agent(Struct, frozen=True, forbid_unknown_fields=True):
    """A program that starts MCP servers.

    Args:
        title: The name for people.
        places: The user's own file, by system.
        keys: The keys that lead to the servers in that file.
        signs: Paths that show that the agent is installed.
        programs: Commands on PATH that show that the agent is installed.
        skills: The user's folder of skills, if the agent has skills.
        native: The agent's own command for adding a server; `{name}` and `{command}` are filled in.
        environment: The variables for its servers: `all` of the shell's, a `few`, or those of the `desktop` if no shell
            starts the agent.
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
        NotFoundError: The agent is unknown; `choices` has the names.
    """
    named = {word: agent for agent in AGENTS for word in (agent.name, agent.title)}
    if (found := find_named(name, named)) is not None:
        return found
    names = [agent.name for agent in AGENTS]
    near = did_you_mean(name, names, "The agents")
    raise NotFoundError(f"there is no agent {name[:60]!r}.{near}", choices=names)


class Machine(Struct, frozen=True):
    """The machine on which places are looked up.

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
            UsageError: The user has no home folder, or the current folder is gone.
        """
        try:
            return Machine(platform.system(), Path.home(), dict(os.environ), Path.cwd())
        except (RuntimeError, OSError) as error:
            message = f"this has to be run by a user with a home, in a folder that is there: {error}"
            raise UsageError(message) from None

    def folders(self) -> dict[str, Path]:
        """Return the variables used in places."""
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
        """Return the first place that qualifies by the rules in `agents.toml`."""
        found = list(self._candidates(places))
        return next((path for path, is_certain in found if is_certain or path.is_file()), found[0][0])

    def has(self, agent: Agent) -> bool:
        """Whether an agent is installed: one of its signs exists, or its command is on PATH."""
        path = self.environ.get("PATH", "")
        has_trace = any(sign.exists() for sign, _ in self._candidates(agent.signs))
        return has_trace or any(shutil.which(name, path=path) for name in agent.programs)

    def agents(self) -> list[Agent]:
        """Return the installed agents."""
        return [agent for agent in AGENTS if self.has(agent)]

    def config_file(self, agent: Agent) -> Path:
        """Return the file of an agent's servers."""
        return self.find(agent.places.get(self.system) or agent.places.get("*") or agent.places["Linux"])

    def skills_folder(self, agent: Agent) -> Path | None:
        """Return the folder of an agent's skills, or None if it has no skills."""
        return self.find(agent.skills) if agent.skills else None

    def _candidates(self, places: Iterable[str]) -> Iterator[tuple[Path, bool]]:
        """Yield each possible place, and whether it qualifies even if it does not exist."""
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


# -- how an agent starts this very installation: agents have another PATH and another current folder


class Launch(Struct, frozen=True):
    """A command, its arguments, and the variables it adds to the agent's environment."""

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}

    def entry(self, shape: EntryShape, name: str) -> dict[str, Any]:
        """Return the launch in the form of an agent's entry."""
        fixed = {key: name if value == "{name}" else value for key, value in shape.fixed.items()}
        apart = {shape.command: self.command, shape.args: list(self.args)}
        command = apart if shape.args else {shape.command: [self.command, *self.args]}
        return {**fixed, **command, **({shape.env: dict(self.env)} if self.env else {})}


def read_launch(entry: Any, shape: EntryShape) -> Launch | None:
    """Read the launch of a server from an entry of an agent's file, or None if the entry starts no server."""
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
    """Whether a command or one of its arguments is Reasonry."""
    words = (launch.command, *launch.args)
    # On Windows, both kinds of slashes divide a path.
    return any(PureWindowsPath(word).stem == NAME or word.startswith("reasonry.") for word in words)


def this_installation() -> Launch:
    """Return the launch of this installation's MCP server."""
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
    """Return the package source for `uvx`, with the installed extras."""
    extras = [name for name in EXTRAS if has_extra(name)]
    package = f"reasonry[{','.join(extras)}]" if extras else "reasonry"
    if not (origin := read_origin()):
        return "--from", package
    vcs = origin.get("vcs_info", {})
    kind, revision = vcs.get("vcs"), vcs.get("requested_revision")
    url = f"{kind}+{origin['url']}" if kind else origin["url"]
    return "--from", f"{package} @ {url}{f'@{revision}' if revision else ''}"
