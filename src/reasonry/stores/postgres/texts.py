"""How the texts of a PostgreSQL store are spelled, and its index of them.

The extension `pg_trgm` indexes them where the server has it; elsewhere a search reads them. PostgreSQL keeps no text
with the character NUL: such texts are kept in another spelling, which leaves their order, how they begin, and all other
texts as they are.
"""

from __future__ import annotations

from functools import cache
from typing import Any

INDEX = "searchable_trigrams"
ADD_INDEX = (
    "CREATE EXTENSION IF NOT EXISTS pg_trgm",
    f"CREATE INDEX {INDEX} ON searchable USING GIN (folded gin_trgm_ops)",
)
HAS_INDEX = "SELECT to_regclass($1) IS NOT NULL"
FIND = """
SELECT place FROM searchable
WHERE folded LIKE $1 AND place BETWEEN $2 AND $3 AND strpos(folded, $4) > 0 ORDER BY place LIMIT $5
"""


def pattern_of(part: str) -> str:
    """Return the pattern of the texts that contain a part."""
    escaped = part.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


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
