"""What setting up an agent, or taking Reasonry out of it, would do to its files; and doing it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from ...errors import ConflictError, ReasonryError, UsageError
from .agent_table import Agent
from .config_file import FileChange, make_change, missing_folders, read_config, real_path
from .formats import TextFormat, drop_entry, find_entry, open_format, put_entry
from .launch import Launch
from .places import Machine
from .receipts import Edit, EntryReceipt, ReceiptFile, Receipts, checksum
from .skill_copies import SkillPlan, plan_skill_removal, plan_skills


class SetupRequest(Struct, frozen=True):
    """What is wanted of each agent."""

    launch: Launch
    name: str
    for_project: bool = False
    with_skills: bool = True
    force: bool = False

    def entry(self, agent: Agent) -> dict[str, Any]:
        """Return the entry as the agent writes it down."""
        return self.launch.entry(agent.entry_shape(for_project=self.for_project), self.name)


class AgentPlan(Struct, frozen=True):
    """What is to become of an agent's files.

    Args:
        state: `add`, `update`, `remove`, `unchanged`, `absent` or `refused`, with the error.
        diff: The lines that come and go, without what else stands there.
    """

    agent: Agent
    file: Path | None
    state: str
    diff: tuple[str, ...] = ()
    change: FileChange | None = None
    receipt: Callable[[Receipts], Receipts] | None = None
    skills: tuple[SkillPlan, ...] = ()
    error: ReasonryError | None = None

    @property
    def does_something(self) -> bool:
        """Whether a file would change."""
        return self.change is not None or any(plan.change is not None for plan in self.skills)


class Setup:
    """Plans and makes changes to the files of agents."""

    def __init__(self, machine: Machine, receipts: ReceiptFile) -> None:
        self.machine = machine
        self.receipts = receipts

    def plan(self, agent: Agent, wanted: SetupRequest) -> AgentPlan:
        """Return what sets an agent up. Nothing is written."""
        return self._plan(agent, wanted, _plan_entry, self._plan_skills)

    def plan_removal(self, agent: Agent, wanted: SetupRequest) -> AgentPlan:
        """Return what takes Reasonry out of an agent. Nothing is written."""
        return self._plan(agent, wanted, _plan_entry_removal, self._plan_skill_removal)

    def make(self, plan: AgentPlan) -> None:
        """Make the changes of a plan.

        Raises:
            ReasonryError: A file cannot be written; what was not reached stays as it was.
        """
        for part in (plan, *plan.skills):
            before = self.receipts.read()
            # Written first: a change without a receipt could not be told from somebody else's.
            if part.receipt is not None:
                self.receipts.update(part.receipt)
            try:
                if part.change is not None:
                    make_change(part.change)
            except ReasonryError:
                self.receipts.update(lambda receipts, before=before: before)
                raise

    def _plan(
        self,
        agent: Agent,
        wanted: SetupRequest,
        plan_entry: Callable[[_EntryFile, SetupRequest, Receipts], AgentPlan],
        plan_files: Callable[[Agent, SetupRequest, Receipts], list[SkillPlan]],
    ) -> AgentPlan:
        path = self.machine.config_file(agent, for_project=wanted.for_project)
        try:
            if path is None:
                raise UsageError(
                    f"{agent.title} has no file for a project; leave --project out", option="project"
                )
            receipts = self.receipts.read()
            file = _EntryFile(agent, path, wanted.name)
            plan = plan_entry(file, wanted, receipts)
            skills = plan_files(agent, wanted, receipts) if wanted.with_skills else []
        except ReasonryError as error:
            return AgentPlan(agent, path, "refused", error=error)
        return AgentPlan(
            agent, path, plan.state, plan.diff, plan.change, plan.receipt, tuple(skills), plan.error
        )

    def _plan_skills(self, agent: Agent, wanted: SetupRequest, receipts: Receipts) -> list[SkillPlan]:
        folder = self.machine.skills_folder(agent, for_project=wanted.for_project)
        return [] if folder is None else plan_skills(folder, agent.name, receipts, force=wanted.force)

    def _plan_skill_removal(self, agent: Agent, wanted: SetupRequest, receipts: Receipts) -> list[SkillPlan]:
        folder = self.machine.skills_folder(agent, for_project=wanted.for_project)
        return [] if folder is None else plan_skill_removal(folder, agent.name, receipts)


def same_entry(first: Any, second: Any) -> bool:
    """Whether two entries say the same; agents write down what goes without saying."""
    return _without_defaults(first) == _without_defaults(second)


def _without_defaults(entry: Any) -> Any:
    if not isinstance(entry, Mapping):
        return entry
    defaults: dict[str, Any] = {"env": {}, "type": "stdio"}
    return {key: value for key, value in entry.items() if key not in defaults or value != defaults[key]}


class _EntryFile:
    """The file of an agent with the entry that is about to change."""

    def __init__(self, agent: Agent, path: Path, name: str) -> None:
        self.agent = agent
        self.path = path
        self.real = real_path(path)
        self.keys = (*agent.keys, name)
        self.form: TextFormat = open_format(agent.format)
        self.text = read_config(self.real)
        self.data = self._try(lambda: self.form.read(self.text or ""), "is not valid {}")
        self.entry = find_entry(self.data, self.keys)

    def put(self, text: str, entry: Mapping[str, Any]) -> str:
        return self._try(lambda: put_entry(self.form, text, self.keys, entry), "cannot be edited as {}")

    def drop(self, text: str, created: int) -> str:
        return self._try(lambda: drop_entry(self.form, text, self.keys, created), "cannot be edited as {}")

    def count_missing(self) -> int:
        """Return how many objects have to be made for the entry."""
        depth = 0
        while depth < len(self.keys) - 1 and find_entry(self.data, self.keys[: depth + 1]) is not None:
            depth += 1
        return len(self.keys) - 1 - depth

    def refusal(self, doing: str) -> ConflictError:
        """Return the error for an entry that is not Reasonry's to change."""
        return ConflictError(
            f"{self.path} has an entry {self.keys[-1]!r} that Reasonry did not write, or that was changed since: "
            f"--force {doing} it, --name sets up another one beside it",
            file=str(self.path),
        )

    def _try(self, work: Callable[[], Any], complaint: str) -> Any:
        try:
            return work()
        except ValueError as error:
            message = f"{self.path} {complaint.format(self.form.name.upper())}: {error}; nothing was changed"
            raise UsageError(message, file=str(self.path)) from None


def _plan_entry(file: _EntryFile, wanted: SetupRequest, receipts: Receipts) -> AgentPlan:
    agent, text = file.agent, file.text
    entry = wanted.entry(agent)
    if same_entry(file.entry, entry):
        return AgentPlan(agent, file.path, "unchanged")
    receipt = receipts.entry(file.real, wanted.name)
    is_ours = receipt is not None and same_entry(file.entry, receipt.entry)
    if file.entry is not None and not is_ours and not wanted.force:
        raise file.refusal("replaces")
    original, made, folders = text, text is None, missing_folders(file.real)
    created = file.count_missing()
    after = file.put(text or "", entry)
    exact = True
    if is_ours and receipt is not None:
        created, made, folders = receipt.created, receipt.made_file, tuple(map(Path, receipt.folders))
        exact = receipt.edit is not None and text is not None and checksum(text) == receipt.after
        if exact and receipt.edit is not None and text is not None:
            original = receipt.edit.undone(text)
    edit = Edit.between(original or "", after) if exact else None
    new = EntryReceipt(
        str(file.real), wanted.name, entry, checksum(after), edit, created, made, tuple(map(str, folders))
    )
    return AgentPlan(
        agent,
        file.path,
        "add" if file.entry is None else "update",
        tuple(show_difference(text or "", after, shows_old=is_ours)),
        FileChange(file.real, text, after, folders),
        lambda all: all.with_entry(file.real, wanted.name, new),
    )


def _plan_entry_removal(file: _EntryFile, wanted: SetupRequest, receipts: Receipts) -> AgentPlan:
    agent, text = file.agent, file.text
    receipt = receipts.entry(file.real, wanted.name)

    def forget(all: Receipts) -> Receipts:
        return all.with_entry(file.real, wanted.name, None)

    if file.entry is None or text is None:
        return AgentPlan(agent, file.path, "absent", receipt=None if receipt is None else forget)
    written = wanted.entry(agent) if receipt is None else receipt.entry
    if not same_entry(file.entry, written) and not wanted.force:
        raise file.refusal("removes")
    after: str | None
    if receipt is not None and receipt.edit is not None and checksum(text) == receipt.after:
        after = receipt.edit.undone(text)
    else:
        after = file.drop(text, receipt.created if receipt else 0)
    diff = tuple(show_difference(text, after, shows_old=same_entry(file.entry, written)))
    folders = tuple(map(Path, receipt.folders)) if receipt else ()
    if receipt is not None and receipt.made_file and after.strip("\ufeff \t\r\n{}") == "":
        after = None
    return AgentPlan(agent, file.path, "remove", diff, FileChange(file.real, text, after, folders), forget)


_PUNCTUATION = re.compile(r"[\s{}\[\],]*")


def show_difference(before: str, after: str, *, shows_old: bool) -> list[str]:
    """Return the lines that go and come, for people.

    What stands beside them on a line is not shown, as it may hold a key; what is replaced neither, unless
    `shows_old`.
    """
    edit = Edit.between(before, after)
    start = before.rfind("\n", 0, edit.place) + 1
    head = _harmless(before[start : edit.place])
    end = edit.place + len(edit.old)
    stop = before.find("\n", end)
    tail = _harmless(before[end : len(before) if stop < 0 else stop])
    lines = list[str]()
    if edit.old:
        old = (head + edit.old + tail).splitlines()
        is_shown = shows_old or _PUNCTUATION.fullmatch(edit.old) is not None
        lines += [f"- {line}" for line in old] if is_shown else [f"- ({len(old)} lines that are not shown)"]
    new = (head + edit.new + tail).splitlines() if edit.new else []
    return lines + [f"+ {line}" for line in new if line.strip()]


def _harmless(text: str) -> str:
    return text.rstrip("\r") if _PUNCTUATION.fullmatch(text) else "…"
