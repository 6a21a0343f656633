"""The spelling of texts: PostgreSQL keeps none with the character NUL.

Such texts are kept in another spelling, which leaves their order, how they begin, and all other texts as they are.
"""

from __future__ import annotations

from typing import Any

from psycopg.types.string import StrDumperUnknown, TextLoader


def spell(text: str) -> str:
    """Return a text as it is kept: with two characters for NUL, and for the one that begins them."""
    return text.replace("\x01", "\x01\x02").replace("\x00", "\x01\x01")


def read(kept: str) -> str:
    """Return the text that is kept so."""
    return kept.replace("\x01\x01", "\x00").replace("\x01\x02", "\x01")


def keep_any_text(db: Any) -> None:
    """Have a connection spell texts, and read them back."""
    db.adapters.register_dumper(str, _Dumper)
    db.adapters.register_loader("text", _Loader)


class _Dumper(StrDumperUnknown):
    def dump(self, obj: str) -> Any:
        return super().dump(spell(obj))


class _Loader(TextLoader):
    def load(self, data: Any) -> Any:
        return read(str(super().load(data)))
