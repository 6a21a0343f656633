"""Plans the setup or the removal of Reasonry in an agent: the changes to the agent's configuration file and skills."""

from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec import Struct, structs

from ...errors import ConflictError, ReasonryError, UsageError
from .agents import Agent, EntryShape, Launch, Machine, read_launch, starts_reasonry
from .checks import find_entries
from .config_file import FileChange, backup_of, edit_text, find_entry, read_config, read_data


@cache
def skill_files() -> dict[PurePosixPath, str]:
    """Return the text of each skill file of this version, by its path relative to an agent's skills folder."""
    root = resources.files(__package__ or "") / "skills"
    return {
        PurePosixPath(folder.name, file.name): file.read_text("utf-8")
        for folder in sorted(root.iterdir(), key=lambda entry: entry.name)
        if folder.is_dir()
        for file in folder.iterdir()
        if file.is_file()
    }


def compare_skills(folder: Path) -> str:
    """Compare the skills in a folder with the skills of this version. Return `current`, `different` or `missing`."""
    found = {name: read_config(folder / name) for name in skill_files()}
    return "missing" if None in found.values() else "current" if found == skill_files() else "different"


class SetupRequest(Struct, frozen=True):
    """A request to set up Reasonry in an agent.

    Args:
        agents: The names of all agents that the user sets up with the same command.
        remove: Whether to remove Reasonry instead of adding it.
    """

    launch: Launch
    name: str
    agents: tuple[str, ...] = ()
    remove: bool = False
    with_skills: bool = True


class AgentPlan(Struct, frozen=True):
    """The planned changes to an agent's files.

    Args:
        state: `add`, `update`, `remove`, `unchanged`, `absent` (nothing to remove) or `refused` (see `error`).
        diff: The new lines of Reasonry's entry. Other lines of the file are omitted, since they may contain API keys.
    """

    agent: Agent
    file: Path
    state: str
    diff: tuple[str, ...] = ()
    change: FileChange | None = None
    skills: tuple[FileChange, ...] = ()
    error: ReasonryError | None = None

    @property
    def changes(self) -> list[FileChange]:
        """The changes that alter a file: the configuration file first, then the skills."""
        return [change for change in (self.change, *self.skills) if change and change.before != change.after]


def plan_setup(machine: Machine, agent: Agent, wanted: SetupRequest) -> AgentPlan:
    """Plan the changes to an agent's files, and write nothing. An error becomes a plan with the state `refused`."""
    path = machine.config_file(agent)
    try:
        plan = _plan_entry(agent, path, wanted)
        return structs.replace(plan, skills=tuple(_plan_skills(machine, agent, wanted)))
    except ReasonryError as error:
        return AgentPlan(agent, path, "refused", error=error)


def _plan_entry(agent: Agent, place: Path, wanted: SetupRequest) -> AgentPlan:
    path, keys = place.resolve(), (*agent.keys, wanted.name)
    text = read_config(path)
    own = wanted.launch.entry(agent.shape, wanted.name)
    try:
        there = find_entry(read_data(agent.format, text or ""), keys)
        is_ours = _is_ours(there, agent.shape)
        # An existing entry keeps the members that Reasonry does not write, such as an environment.
        entry = None if wanted.remove else {**there, **own} if is_ours else own
        if there == entry:
            return AgentPlan(agent, place, "absent" if wanted.remove else "unchanged")
        if there is not None and not is_ours:
            message = f"{path} has an entry {wanted.name!r} that does not start Reasonry; take another --name"
            raise ConflictError(message, file=str(path))
        after = edit_text(agent.format, text or "", keys, entry)
        if entry is None and "".join(after.split()) in ("", "{}") and _is_own_file(path, agent, keys):
            after = None
        change = FileChange(path, text, after)
    except ValueError as error:
        message = f"{path} cannot be edited as {agent.format.upper()}: {error}; nothing was changed"
        raise UsageError(message, file=str(path)) from None
    shown = "" if wanted.remove else edit_text(agent.format, "", keys, own)
    state = "remove" if wanted.remove else "add" if there is None else "update"
    return AgentPlan(agent, place, state, tuple(f"+ {line}" for line in shown.splitlines()), change)


def _is_ours(entry: Any, shape: EntryShape) -> bool:
    launch = read_launch(entry, shape)
    return launch is not None and starts_reasonry(launch) and "mcp" in launch.args


def _is_own_file(path: Path, agent: Agent, keys: Sequence[str]) -> bool:
    """Whether a setup created the file: the file has no backup, or the backup already has Reasonry's entry."""
    backup = read_config(backup_of(path))
    return backup is None or _is_ours(find_entry(read_data(agent.format, backup), keys), agent.shape)


def _plan_skills(machine: Machine, agent: Agent, wanted: SetupRequest) -> Iterator[FileChange]:
    """Yield the changes that install or remove the skills. Skills that the user wrote are left unchanged."""
    folder = machine.skills_folder(agent)
    if folder is None or not wanted.with_skills:
        return
    users = _others_of(machine, agent, wanted, folder) if wanted.remove else ""
    for name, text in skill_files().items():
        path = (folder / name).resolve()
        before = read_config(path)
        if before is None and wanted.remove:
            continue
        note = ""
        if users:
            note = f"{path} stays for {users}"
        elif wanted.remove and before != text:
            note = f"{path} stays: it differs from the skill of this version"
        elif not wanted.remove and before and "reasonry" not in before.casefold():
            note = f"{path} stays: it is another skill of that name"
        yield FileChange(path, before, before if note else None if wanted.remove else text, note)


def _others_of(machine: Machine, agent: Agent, wanted: SetupRequest, folder: Path) -> str:
    """Return the titles of the other agents that use the skills in `folder`. Commas separate the titles."""
    leaving = (agent.name, *wanted.agents)
    users = [entry.agent for entry in find_entries(machine) if entry.name == wanted.name]
    others = [other for other in users if other.name not in leaving]
    return ", ".join(other.title for other in others if machine.skills_folder(other) == folder)
