"""Reads and writes the values that processes share within a transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ..records import ShareDecision
from . import sql

T = TypeVar("T")


def change(tx: sql.Tx, name: str, decide: ShareDecision[T], now_ms: Callable[[sql.Tx], int]) -> T:
    """Change a value as it is decided; see `SharedValues`."""
    row = tx.execute(sql.SHARED + tx.dialect.lock, (name,)).fetchone()
    before = None if row is None else row[0]
    # The time is asked for once nobody else can change the value, so that it never goes back between two changes.
    after, returned = decide(before, now_ms(tx))
    if after == before:
        return returned
    if after is None:
        tx.execute(sql.DROP_SHARED, (name,))
    elif before is None:
        tx.execute(sql.ADD_SHARED, (name, after))
    else:
        tx.execute(sql.SET_SHARED, (after, name))
    return returned
