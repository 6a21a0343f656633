"""The texts of a PostgreSQL store: how they are searched, and how they are spelled.

The extension `pg_trgm` indexes them where the server has it; elsewhere a search reads them. PostgreSQL keeps no text
with the character NUL: such texts are kept in another spelling, which leaves their order, how they begin, and all other
texts as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from .. import searchable, sql
from ..sql import Tx

INDEX = "searchable_trigrams"
ADD_INDEX = (
    "CREATE EXTENSION IF NOT EXISTS pg_trgm",
    f"CREATE INDEX {INDEX} ON searchable USING GIN (folded gin_trgm_ops)",
)
HAS_INDEX = "SELECT to_regclass($1) IS NOT NULL"
FIND = "SELECT place FROM searchable WHERE folded LIKE $1 AND place BETWEEN $2 AND $3 ORDER BY place LIMIT $4"


class Texts:
    """See `TextIndex`.

    Args:
        is_indexed: Whether there is an index of sequences of three characters.
    """

    def __init__(self, is_indexed: bool) -> None:
        self._is_indexed = is_indexed

    def put(self, tx: Tx, texts: Sequence[tuple[int, str]]) -> None:
        """See `TextIndex`."""
        tx.executemany(sql.PUT_TEXT, texts)

    def find(self, tx: Tx, needle: str, low: int, high: int, limit: int) -> list[int]:
        """See `TextIndex`."""
        if not self._is_indexed:
            return searchable.scan(tx, needle, low, high, limit)
        escaped = needle.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        return [at for (at,) in tx.execute(FIND, (f"%{escaped}%", low, high, limit))]

    def drop(self, tx: Tx, low: int, high: int) -> None:
        """See `TextIndex`."""
        tx.execute(sql.DROP_TEXTS, (low, high))


def spell(text: str) -> str:
    """Return a text as it is kept: with two characters for NUL, and for the one that begins them."""
    return text.replace("\x01", "\x01\x02").replace("\x00", "\x01\x01")


def read(kept: str) -> str:
    """Return the text that is kept so."""
    return kept.replace("\x01\x01", "\x00").replace("\x01\x02", "\x01")


def keep_any_text(db: Any) -> None:
    """Have a connection spell texts, and read them back."""
    dumper, loader = _adapters()
    db.adapters.register_dumper(str, dumper)
    db.adapters.register_loader("text", loader)


@cache
def _adapters() -> tuple[Any, Any]:
    from psycopg.types.string import StrDumperUnknown, TextLoader

    class Dumper(StrDumperUnknown):
        def dump(self, obj: str) -> Any:
            return super().dump(spell(obj))

    class Loader(TextLoader):
        def load(self, data: Any) -> Any:
            return read(str(super().load(data)))

    return Dumper, Loader
