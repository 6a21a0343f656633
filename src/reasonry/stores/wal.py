"""The write-ahead log beside a store's file: whether it belongs to the file, and whether it is whole.

SQLite applies any log beside a file that has valid checksums, and silently ignores what comes after a
damaged part. So a file put back without its log, or with the log of another, would become a mixture of both, and a
damaged log would lose acknowledged commits. Therefore each commit leaves a random mark in the store, and the mark of
the commit before: a log belongs to a file that has the mark its first commit names as the one before, or that of one
of its own commits (where a checkpoint brought it into the file).

The layout is that of https://sqlite.org/fileformat2.html, section 4.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from .files import unusable_error
from .migrations import APPLICATION_ID
from .raw import RawFile

_HEADER, _FRAME = 32, 24
_MAGIC = 0x377F0682
_MARK_CELL = bytes.fromhex("2401 0400 2c2c")
"""How the one row of the table `mark` begins: its length, key 1, and two blobs of 16 bytes."""
_MARK_BYTES = len(_MARK_CELL) + 32

_TRIES, _SLEEP_S = 5, 0.02
"""Others may write between reading the file and the log, so a mismatch counts only if it persists."""


def log_of(path: Path) -> Path:
    """Return the path of the log of a file."""
    return path.with_name(path.name + "-wal")


def check_log(path: Path) -> None:
    """Raise StoreError if the log beside a store's file is damaged, or is not that of the file."""
    try:
        if log_of(path).stat().st_size <= _HEADER:
            return
    except FileNotFoundError:
        return
    file = RawFile(path)
    try:
        # Whoever has the store open has looked through its log already, and may be writing to it.
        alone = file.lock_alone()
        found = _find_lasting_fault(file, log_of(path), thorough=alone)
    finally:
        file.close()
    if found is not None:
        name = log_of(path).name
        why = (
            f"its log {name} {found}; put back the file and the log that belong together, or restore a backup "
            f"(reasonry store restore); without {name} the file is as it was at its last checkpoint"
        )
        raise unusable_error(path, why, "store_corrupt")


def _find_lasting_fault(file: RawFile, log: Path, *, thorough: bool) -> str | None:
    found = None
    for tries in range(_TRIES):
        if tries:
            time.sleep(_SLEEP_S)
        try:
            with log.open("rb") as opened:
                found = _find_fault(file, opened, thorough)
        except FileNotFoundError:
            return None
        if found is None:
            break
    return found


class _Mark(NamedTuple):
    before: bytes
    own: bytes


class _Frame(NamedTuple):
    head: bytes
    page: bytes
    order: str
    checksum_before: bytes

    @property
    def number(self) -> int:
        """Of the page it holds."""
        return int.from_bytes(self.head[:4], "big")

    @property
    def commits(self) -> bool:
        return any(self.head[4:8])

    @property
    def checksum(self) -> bytes:
        return self.head[16:]

    @property
    def sound(self) -> bool:
        """Whether its checksum follows from that of the frame before it; slow to compute."""
        return self.checksum == _checksum(self.order, self.head[:8] + self.page, self.checksum_before)


def _find_fault(file: RawFile, log: BinaryIO, thorough: bool) -> str | None:
    header = log.read(_HEADER)
    if len(header) < _HEADER or not any(header):
        return None
    magic, _, size = struct.unpack(">3I", header[:12])
    order = ">" if magic & 1 else "<"
    if magic & ~1 != _MAGIC or header[24:] != _checksum(order, header[:24], bytes(8)):
        return "is damaged at its beginning"
    if size != _page_size(file):
        return "is that of another file"
    found = _find_mismatch(file, _frames(log, header, order))
    if found is None and thorough:
        log.seek(_HEADER)
        return _find_damage(_frames(log, header, order))
    return found


def _find_mismatch(file: RawFile, frames: Iterator[_Frame]) -> str | None:
    """Compare marks up to the first that fits, and checksums up to the first mark."""
    in_file, first = set[bytes](), True
    for frame in frames:
        if first and not frame.sound:
            return None
        if frame.number == 1 and int.from_bytes(frame.page[68:72], "big") != APPLICATION_ID:
            return "is that of another application's file"
        mark = _mark(frame.page)
        if mark is None:
            continue
        in_file = in_file or _marks_in_file(file, frame.number, len(frame.page))
        if not in_file or mark.own in in_file or (first and mark.before in in_file):
            return None
        first = False
    return None if first else "belongs to another state of the file, or to another file"


def _find_damage(frames: Iterator[_Frame]) -> str | None:
    """A commit starts only after the one before is on the disk, so only the last may be half written."""
    broken, commits = False, 0
    for frame in frames:
        if broken:
            commits += frame.commits and frame.sound
        elif not frame.sound:
            broken = True
    return "is damaged within" if commits > 1 else None


def _frames(log: BinaryIO, header: bytes, order: str) -> Iterator[_Frame]:
    """Yield the frames of this log; after them come remains of overwritten logs."""
    size, salt, checksum = int.from_bytes(header[8:12], "big"), header[16:24], header[24:]
    while len(found := log.read(_FRAME + size)) == _FRAME + size:
        frame = _Frame(found[:_FRAME], found[_FRAME:], order, checksum)
        if frame.head[8:16] == salt:
            yield frame
        checksum = frame.checksum


def _checksum(order: str, data: bytes, before: bytes) -> bytes:
    first, second = struct.unpack(">2I", before)
    words = struct.iter_unpack(f"{order}2I", data)
    for even, odd in words:
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    return struct.pack(">2I", first, second)


def _page_size(file: RawFile) -> int:
    size = int.from_bytes(file.read(16, 2), "big")
    return 65536 if size == 1 else size


def _marks_in_file(file: RawFile, number: int, size: int) -> set[bytes]:
    """Return the mark of the page of that number; if it has none, that of any page, because the mark may have moved."""
    for numbers in ((number,), range(1, file.size() // size + 1)):
        marks = (_mark(file.read((page_number - 1) * size, size)) for page_number in numbers)
        if found := {mark.own for mark in marks if mark}:
            return found
    return set()


def _mark(page: bytes) -> _Mark | None:
    """Return the mark, if this is the page of the table `mark`: a leaf with one row, at its end."""
    cell = page[-_MARK_BYTES:]
    if page[:1] != b"\x0d" or page[3:5] != b"\x00\x01" or not cell.startswith(_MARK_CELL):
        return None
    return _Mark(cell[-32:-16], cell[-16:])
