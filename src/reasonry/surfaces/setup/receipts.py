"""What was written where: so that it can be taken out again to the byte, and is told from what the user changed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, structs

from ...errors import UsageError
from .config_file import FileChange, make_change, read_config

_FORMAT = 1


class Edit(Struct, frozen=True):
    """A part of a text, and what came in its place."""

    place: int
    old: str
    new: str

    @staticmethod
    def between(before: str, after: str) -> Edit:
        """Return the one edit that leads from one text to another."""
        shorter = min(len(before), len(after))
        start = _longest(shorter, lambda size: before[:size] == after[:size])
        end = _longest(
            shorter - start,
            lambda size: before[len(before) - size :] == after[len(after) - size :],
        )
        return Edit(start, before[start : len(before) - end], after[start : len(after) - end])

    def undone(self, after: str) -> str:
        """Return the text as it was."""
        return after[: self.place] + self.old + after[self.place + len(self.new) :]


class EntryReceipt(Struct, frozen=True):
    """An entry that was written.

    Args:
        after: Checksum of the whole text then; while it holds, `edit` can be undone.
        edit: What was done to the text as it was before Reasonry came; None if others have written in between.
        created: So many objects around the entry were made for it.
        made_file: Whether the file was.
        folders: The folders that were.
    """

    file: str
    name: str
    entry: dict[str, Any]
    after: str
    edit: Edit | None
    created: int = 0
    made_file: bool = False
    folders: tuple[str, ...] = ()


class SkillReceipt(Struct, frozen=True):
    """A file of a skill that was written, for the agents that read it."""

    file: str
    after: str
    agents: tuple[str, ...]
    folders: tuple[str, ...] = ()


class Receipts(Struct, frozen=True):
    """All of them."""

    format: int = _FORMAT
    entries: tuple[EntryReceipt, ...] = ()
    skills: tuple[SkillReceipt, ...] = ()

    def entry(self, file: Path, name: str) -> EntryReceipt | None:
        """Return that of an entry of a file."""
        return next(
            (receipt for receipt in self.entries if (receipt.file, receipt.name) == (str(file), name)), None
        )

    def skill(self, file: Path) -> SkillReceipt | None:
        """Return that of a file of a skill."""
        return next((receipt for receipt in self.skills if receipt.file == str(file)), None)

    def with_entry(self, file: Path, name: str, new: EntryReceipt | None) -> Receipts:
        """Return these with another receipt for an entry, or none."""
        rest = tuple(receipt for receipt in self.entries if (receipt.file, receipt.name) != (str(file), name))
        return structs.replace(self, entries=(*rest, *([new] if new else [])))

    def with_skill(self, file: Path, new: SkillReceipt | None) -> Receipts:
        """Return these with another receipt for a file of a skill, or none."""
        rest = tuple(receipt for receipt in self.skills if receipt.file != str(file))
        return structs.replace(self, skills=(*rest, *([new] if new else [])))


class ReceiptFile:
    """The file that keeps them, beside the store."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> Receipts:
        """Return what is kept.

        Raises:
            UsageError: The file is damaged.
        """
        text = read_config(self.path)
        if text is None:
            return Receipts()
        try:
            receipts = msgspec.json.decode(text, type=Receipts)
        except msgspec.DecodeError as error:
            raise UsageError(
                f"{self.path} is damaged ({error}): remove it; entries are then known by what they say",
                file=str(self.path),
            ) from None
        if receipts.format != _FORMAT:
            raise UsageError(
                f"{self.path} was written by a newer Reasonry; use that one", file=str(self.path)
            )
        return receipts

    def update(self, change: Callable[[Receipts], Receipts]) -> None:
        """Keep what becomes of what is kept."""
        before = read_config(self.path)
        receipts = change(self.read())
        after: str | None = msgspec.json.format(msgspec.json.encode(receipts), indent=1).decode() + "\n"
        if not receipts.entries and not receipts.skills:
            after = None
        if after != before:
            # Entries may hold what their user wants to keep to himself.
            make_change(FileChange(self.path, before, after), is_private=True)


def checksum(text: str) -> str:
    """Return the checksum of a text."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _longest(limit: int, holds: Callable[[int], bool]) -> int:
    """Return the largest size up to a limit for which something holds that holds for all smaller ones."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low
