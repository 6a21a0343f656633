"""Escapes NUL characters, which PostgreSQL cannot store in texts.

Escaped texts keep their order and their common prefixes. Only texts with NUL or the escape character U+0001 change.
"""

from typing import Any

from psycopg.types.string import StrDumperUnknown, TextLoader


def spell(text: str) -> str:
    """Escape a text: each NUL and each escape character becomes two characters."""
    return text.replace("\x01", "\x01\x02").replace("\x00", "\x01\x01")


def read(kept: str) -> str:
    """Return the original text of an escaped text."""
    return kept.replace("\x01\x01", "\x00").replace("\x01\x02", "\x01")


def keep_any_text(db: Any) -> None:
    """Make a connection escape every text that it writes and unescape every text that it reads."""
    db.adapters.register_dumper(str, _Dumper)
    db.adapters.register_loader("text", _Loader)


class _Dumper(StrDumperUnknown):
    def dump(self, obj: str) -> Any:
        return super().dump(spell(obj))


class _Loader(TextLoader):
    def load(self, data: Any) -> Any:
        return read(str(super().load(data)))
