"""What setting up an agent, or taking Reasonry out of it, would write where; and doing it."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from ...errors import ConflictError, ReasonryError, UsageError
from .agent_table import AGENTS, Agent
from .config_file import FileChange, make_change, read_config, real_path
from .formats import edit_text, find_entry, read_data
from .launch import Launch, read_launch, starts_reasonry
from .places import Machine
from .skill_copies import SkillPlan, plan_skill_removal, plan_skills


class SetupRequest(Struct, frozen=True):
    """What is wanted of an agent.

    Args:
        remove: Reasonry is to be taken out.
        force: An entry or a skill that is somebody else's is replaced or removed as well.
    """

    launch: Launch
    name: str
    remove: bool = False
    for_project: bool = False
    with_skills: bool = True
    force: bool = False


class AgentPlan(Struct, frozen=True):
    """What is to become of an agent's files.

    Args:
        state: `add`, `update`, `remove`, `unchanged`, `absent` or `refused`, with the error.
        diff: The lines of the entry that come; all else in the file may hold keys, and is not shown.
    """

    agent: Agent
    file: Path | None
    state: str
    diff: tuple[str, ...] = ()
    change: FileChange | None = None
    skills: tuple[SkillPlan, ...] = ()
    error: ReasonryError | None = None

    @property
    def changes(self) -> list[FileChange]:
        """The files, in the order in which they change."""
        return [*([self.change] if self.change else []), *(skill.change for skill in self.skills)]

    @property
    def does_something(self) -> bool:
        """Whether a file would change."""
        return any(change.does_something for change in self.changes)


def plan_setup(machine: Machine, agent: Agent, wanted: SetupRequest) -> AgentPlan:
    """Return what is to be written where. Nothing is written."""
    path = machine.config_file(agent, for_project=wanted.for_project)
    try:
        if path is None:
            raise UsageError(
                f"{agent.title} has no file for a project; leave --project out", option="project"
            )
        state, diff, change = _plan_entry(agent, path, wanted)
        skills = _plan_skills(machine, agent, wanted) if wanted.with_skills else []
    except ReasonryError as error:
        return AgentPlan(agent, path, "refused", error=error)
    return AgentPlan(agent, path, state, diff, change, tuple(skills))


def carry_out(plan: AgentPlan) -> None:
    """Make the changes of a plan.

    Raises:
        ReasonryError: A file cannot be written; those that were not reached stay as they were.
    """
    for change in plan.changes:
        make_change(change)


def _plan_entry(agent: Agent, path: Path, wanted: SetupRequest) -> tuple[str, tuple[str, ...], FileChange]:
    path = real_path(path)
    keys = (*agent.keys, wanted.name)
    text = read_config(path)
    shape = agent.entry_shape(for_project=wanted.for_project)
    try:
        there = find_entry(read_data(agent.format, text or ""), keys)
        launch = read_launch(there, shape)
        is_ours = launch is not None and starts_reasonry(launch) and "mcp" in launch.args
        entry = wanted.launch.entry(shape, wanted.name)
        if is_ours:
            # Members that Reasonry does not write, such as an environment, stay.
            entry = {**there, **entry}
        if there == (None if wanted.remove else entry):
            return "absent" if wanted.remove else "unchanged", (), FileChange(path, text, text)
        if there is not None and not is_ours and not wanted.force:
            raise _conflict(path, wanted)
        after = edit_text(agent.format, text or "", keys, None if wanted.remove else entry)
    except ValueError as error:
        message = f"{path} cannot be edited as {agent.format.upper()}: {error}; nothing was changed"
        raise UsageError(message, file=str(path)) from None
    change = FileChange(path, text, after)
    if wanted.remove:
        return "remove", (), change
    shown = edit_text(agent.format, "", keys, wanted.launch.entry(shape, wanted.name))
    return "add" if there is None else "update", tuple(f"+ {line}" for line in shown.splitlines()), change


def _conflict(path: Path, wanted: SetupRequest) -> ConflictError:
    effect = "removes" if wanted.remove else "replaces"
    return ConflictError(
        f"{path} has an entry {wanted.name!r} that does not start Reasonry: --force {effect} it, "
        "--name sets up another one beside it",
        file=str(path),
    )


def _plan_skills(machine: Machine, agent: Agent, wanted: SetupRequest) -> list[SkillPlan]:
    folder = machine.skills_folder(agent, for_project=wanted.for_project)
    if folder is None:
        return []
    if not wanted.remove:
        return plan_skills(folder, force=wanted.force)
    others = [
        other.title
        for other in AGENTS
        if other.name != agent.name
        and machine.skills_folder(other, for_project=wanted.for_project) == folder
        and _is_set_up(machine, other, wanted)
    ]
    return plan_skill_removal(folder, users=", ".join(others), force=wanted.force)


def _is_set_up(machine: Machine, agent: Agent, wanted: SetupRequest) -> bool:
    path = machine.config_file(agent, for_project=wanted.for_project)
    try:
        text = None if path is None else read_config(path)
        return (
            text is not None
            and find_entry(read_data(agent.format, text), (*agent.keys, wanted.name)) is not None
        )
    except (ReasonryError, ValueError):
        return False
