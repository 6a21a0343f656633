"""The skills that come with Reasonry, copied to where agents read theirs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import resources
from pathlib import Path, PurePosixPath

from msgspec import Struct

from .config_file import FileChange, missing_folders, read_config, real_path
from .receipts import Receipts, SkillReceipt, checksum


class SkillPlan(Struct, frozen=True):
    """What is to become of a file of a skill.

    Args:
        state: `add`, `update`, `remove`, `unchanged` or `kept`, if it is not Reasonry's to change; `note` says why.
    """

    path: Path
    state: str
    change: FileChange | None = None
    receipt: Callable[[Receipts], Receipts] | None = None
    note: str = ""


@cache
def skill_files() -> dict[PurePosixPath, str]:
    """Return the files of the skills, by their paths in a folder of skills."""
    root = resources.files(__package__ or "") / "skills"
    if not root.is_dir():
        return {}
    return {
        PurePosixPath(folder.name, file.name): file.read_text("utf-8")
        for folder in sorted(root.iterdir(), key=lambda entry: entry.name)
        if folder.is_dir()
        for file in folder.iterdir()
        if file.is_file()
    }


def compare_skills(folder: Path) -> str:
    """Return whether the skills of a folder are those of this version: `current`, `different` or `missing`."""
    found = {name: read_config(folder / name) for name in skill_files()}
    if None in found.values():
        return "missing"
    return "current" if found == skill_files() else "different"


def plan_skills(folder: Path, agent: str, receipts: Receipts, *, force: bool) -> list[SkillPlan]:
    """Return what makes the skills stand in a folder for an agent."""
    return [
        _plan_copy(real_path(folder / name), text, agent, receipts, force=force)
        for name, text in skill_files().items()
    ]


def plan_skill_removal(folder: Path, agent: str, receipts: Receipts) -> list[SkillPlan]:
    """Return what takes the skills out that were written for an agent; those that others use as well stay."""
    root = real_path(folder)
    return [
        _plan_removal(receipt, agent)
        for receipt in receipts.skills
        if agent in receipt.agents and Path(receipt.file).is_relative_to(root)
    ]


def _plan_copy(path: Path, text: str, agent: str, receipts: Receipts, *, force: bool) -> SkillPlan:
    receipt = receipts.skill(path)
    before = read_config(path)
    if before == text and (receipt is None or agent in receipt.agents):
        return SkillPlan(path, "unchanged")
    is_ours = receipt is not None and before is not None and checksum(before) == receipt.after
    if before is not None and before != text and not is_ours and not force:
        note = f"{path} is there already and is not what Reasonry wrote; --force replaces it"
        return SkillPlan(path, "kept", note=note)
    made = missing_folders(path)
    kept = receipt or SkillReceipt(str(path), "", (), tuple(map(str, made)))
    agents = (*(name for name in kept.agents if name != agent), agent)
    new = SkillReceipt(str(path), checksum(text), agents, kept.folders or tuple(map(str, made)))
    change = None if before == text else FileChange(path, before, text, made)
    state = "unchanged" if change is None else "add" if before is None else "update"
    return SkillPlan(path, state, change, lambda all: all.with_skill(path, new))


def _plan_removal(receipt: SkillReceipt, agent: str) -> SkillPlan:
    path = Path(receipt.file)
    others = tuple(name for name in receipt.agents if name != agent)
    before = read_config(path)
    if others:
        new = SkillReceipt(receipt.file, receipt.after, others, receipt.folders)
        note = f"{path} stays: {', '.join(others)} uses it as well"
        return SkillPlan(path, "kept", receipt=lambda all: all.with_skill(path, new), note=note)
    if before is not None and checksum(before) != receipt.after:
        note = f"{path} stays: it was changed since Reasonry wrote it"
        return SkillPlan(path, "kept", receipt=lambda all: all.with_skill(path, None), note=note)
    folders = tuple(map(Path, receipt.folders))
    change = None if before is None else FileChange(path, before, None, folders)
    state = "unchanged" if change is None else "remove"
    return SkillPlan(path, state, change, lambda all: all.with_skill(path, None))
