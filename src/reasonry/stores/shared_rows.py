"""Reads and writes the values that processes share within a transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ..records import ShareDecision
from . import sql

T = TypeVar("T")

VALUE = "SELECT body FROM shared WHERE name = ?"
ADD = "INSERT INTO shared (name, body) VALUES (?, ?)"
SET = "UPDATE shared SET body = ? WHERE name = ?"
DROP = "DELETE FROM shared WHERE name = ?"


def change(tx: sql.Tx, name: str, decide: ShareDecision[T], now_ms: Callable[[sql.Tx], int]) -> T:
    """Change a value as it is decided; see `SharedValues`."""
    row = tx.execute(VALUE, (name,)).fetchone()
    before = None if row is None else row[0]
    # The time is asked for once nobody else can change the value, so that it never goes back between two changes.
    after, returned = decide(before, now_ms(tx))
    if after == before:
        return returned
    if after is None:
        tx.execute(DROP, (name,))
    elif before is None:
        tx.execute(ADD, (name, after))
    else:
        tx.execute(SET, (after, name))
    return returned
