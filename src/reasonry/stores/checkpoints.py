"""Checkpoints: the folded state of a run after one of its lines, so that it is not folded from its first line again.

A cache: one that is damaged, or does not go with the journal, is ignored.
"""

from __future__ import annotations

import hashlib

from ..records import Checkpoint
from .packing import UnpackError, pack, unpack
from .sql import Tx

SET = """
INSERT INTO checkpoint (key, line, digest, body, checksum) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET line = excluded.line, digest = excluded.digest, body = excluded.body,
  checksum = excluded.checksum
"""
GET = "SELECT line, digest, body, checksum FROM checkpoint WHERE key = ?"
DROP = "DELETE FROM checkpoint WHERE key = ?"


def write(tx: Tx, key: int, checkpoint: Checkpoint) -> None:
    """Put a checkpoint in the place of an earlier one of its run."""
    body = pack(checkpoint.body)
    checksum = _checksum(key, checkpoint.seq, checkpoint.digest, body)
    tx.execute(SET, (key, checkpoint.seq, checkpoint.digest, body, checksum))


def read(tx: Tx, key: int) -> Checkpoint | None:
    """Return the latest checkpoint of a run; None if there is none that is whole."""
    found = tx.execute(GET, (key,)).fetchone()
    if found is None or found[3] != _checksum(key, *found[:3]):
        return None
    try:
        return Checkpoint(found[0], found[1], unpack(found[2]))
    except UnpackError:
        return None


def drop(tx: Tx, key: int) -> None:
    """Remove the checkpoint of a run."""
    tx.execute(DROP, (key,))


def _checksum(key: int, line: int, digest: bytes, body: bytes) -> bytes:
    parts = b"%d %d %b %b" % (key, line, digest, body)
    return hashlib.sha256(parts).digest()[:16]
