"""The statements of `sql` in PostgreSQL's words, and its texts.

Most statements differ in how they name their parameters alone. A few are written anew here, and in a transaction that
writes, the rows that are read before they are written are locked.

PostgreSQL keeps no text with the character NUL. Such texts are kept in another spelling, which leaves their order, how
they begin, and all other texts as they are.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from .. import lease_rows, shared_rows, sql

_OTHER: Mapping[str, str] = {
    sql.RUN_ID: "SELECT run_id FROM run WHERE key = ?",
    sql.SESSION_ID: "SELECT session_id FROM session WHERE key = ?",
    sql.NEXT_RUN_KEY: "SELECT nextval('run_key')",
    sql.NEXT_SESSION_KEY: "SELECT nextval('session_key')",
    sql.SET_IN_JOURNAL: "INSERT INTO in_journal VALUES (?) ON CONFLICT DO NOTHING",
    sql.KEEP_STEADY: """
INSERT INTO steady (key, boot, uptime_ms, steady_ms, checksum) VALUES (1, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE
SET boot = excluded.boot, uptime_ms = excluded.uptime_ms, steady_ms = excluded.steady_ms, checksum = excluded.checksum
""",
}
"""Statements that are written otherwise."""

_PHRASES: tuple[tuple[str, str], ...] = (
    ("= :unattended", "= (:unattended)::int"),
    ("= :paused", "= (:paused)::int"),
    (
        "SELECT value FROM json_each(:keys)",
        "SELECT value::bigint FROM json_array_elements_text((:keys)::json)",
    ),
)

_LOCKING = frozenset({sql.RUN_KEY, sql.RUN, sql.SESSION, sql.SESSION_AT, lease_rows.TAKEN, shared_rows.VALUE})
"""What a transaction that writes reads first; nobody else changes those rows until it is over."""

LOCK_NAME = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
"""Keeps a name to one transaction until it is over."""

_INDEX = re.compile(r" INDEXED BY \w+")
_SUM = re.compile(r"\bsum\((\w+)\)")
"""Of integers it would be a decimal number."""
_PARAMETER = re.compile(r"\?|(?<![:\w]):([a-z_]+)")


@lru_cache(maxsize=512)
def in_its_words(statement: str, writes: bool) -> str:
    """Return a statement as PostgreSQL takes it."""
    if statement.startswith("PRAGMA integrity_check"):
        return "SELECT 'ok'"
    words = _INDEX.sub("", _OTHER.get(statement, statement))
    words = _SUM.sub(r"sum(\1)::bigint", words).replace("total(usd)", "coalesce(sum(usd), 0)")
    for ours, its in _PHRASES:
        words = words.replace(ours, its)
    if writes and statement in _LOCKING:
        words += " FOR UPDATE"
    return _PARAMETER.sub(lambda found: f"%({found[1]})s" if found[1] else "%s", words.replace("%", "%%"))


@lru_cache(maxsize=64)
def for_each(statement: str, types: tuple[type, ...]) -> str:
    """Return a statement that runs another one for each row of its parameters, which are the columns.

    A row it finds begins with the number of the one it was found for.
    """
    numbers = itertools.count()
    words = re.sub("%s", lambda _: f"asked.p{next(numbers)}", in_its_words(statement, False))
    arrays = ", ".join("%s::text[]" if type_ is str else "%s::bigint[]" for type_ in types)
    names = ", ".join(f"p{number}" for number in range(len(types)))
    return f"""
SELECT asked.n, found.* FROM unnest({arrays}) WITH ORDINALITY AS asked ({names}, n)
CROSS JOIN LATERAL ({words}) AS found
"""


def spell(text: str) -> str:
    """Return a text as it is kept: with two characters for NUL, and for the one that begins them."""
    if "\x00" not in text and "\x01" not in text:
        return text
    return text.replace("\x01", "\x01\x02").replace("\x00", "\x01\x01")


def read(kept: str) -> str:
    """Return the text that is kept so."""
    return kept if "\x01" not in kept else kept.replace("\x01\x01", "\x00").replace("\x01\x02", "\x01")


def spell_values(values: Sequence[Any] | Mapping[str, Any]) -> Sequence[Any] | Mapping[str, Any]:
    """Spell every text among the parameters of a statement."""
    if isinstance(values, Mapping):
        return {name: spell(value) if isinstance(value, str) else value for name, value in values.items()}
    return [spell(value) if isinstance(value, str) else value for value in values]
