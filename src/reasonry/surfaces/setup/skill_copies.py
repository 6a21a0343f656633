"""The skills that come with Reasonry, copied to the folders where agents read theirs."""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path, PurePosixPath

from msgspec import Struct

from .config_file import FileChange, read_config, real_path


class SkillPlan(Struct, frozen=True):
    """What is to become of a file of a skill.

    Args:
        state: `add`, `update`, `remove`, `unchanged`, or `kept`; `note` says why.
    """

    state: str
    change: FileChange
    note: str = ""


@cache
def skill_files() -> dict[PurePosixPath, str]:
    """Return the files of the skills, by their paths in a folder of skills."""
    root = resources.files(__package__ or "") / "skills"
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


def plan_skills(folder: Path, *, force: bool) -> list[SkillPlan]:
    """Return what puts the skills into a folder. A file that does not speak of Reasonry is the user's own."""
    plans = list[SkillPlan]()
    for name, text in skill_files().items():
        path = real_path(folder / name)
        before = read_config(path)
        if before in (None, text):
            plans.append(SkillPlan("add" if before is None else "unchanged", FileChange(path, before, text)))
        elif force or "reasonry" in before.casefold():
            plans.append(SkillPlan("update", FileChange(path, before, text)))
        else:
            note = f"{path} is another skill of that name; --force replaces it"
            plans.append(SkillPlan("kept", FileChange(path, before, before), note))
    return plans


def plan_skill_removal(folder: Path, *, users: str, force: bool) -> list[SkillPlan]:
    """Return what takes the skills out of a folder.

    Args:
        users: Other agents that are set up and read the same folder: the skills stay.
        force: Files that are not as this version writes them go, too.
    """
    plans = list[SkillPlan]()
    for name, text in skill_files().items():
        path = real_path(folder / name)
        before = read_config(path)
        keeps = FileChange(path, before, before)
        if before is None:
            continue
        if users:
            plans.append(SkillPlan("kept", keeps, f"{path} stays for {users}"))
        elif before != text and not force:
            note = f"{path} stays: it is not what this version writes; --force removes it"
            plans.append(SkillPlan("kept", keeps, note))
        else:
            plans.append(SkillPlan("remove", FileChange(path, before, None)))
    return plans
