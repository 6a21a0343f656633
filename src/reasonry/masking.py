"""The keys in use in this process, and how they are kept out of what is shown, sent, logged or stored.

Keys are found however they are written: as they are, escaped for JSON (to any depth), for a URL or for HTML, in
base64 (also as part of a longer text, as in Basic authentication), broken over lines.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Struct

from .patterns import lazy_pattern

T = TypeVar("T")

MASK = "***"
LEAST_CHARS = 4
"""A shorter key is not looked for at all."""
CERTAIN_CHARS = 8
"""A shorter key is looked for in errors only, as a word by itself; in other text it may be a word of the language."""
WORD_CHARS = 16
"""A key of fewer characters that is spelled like words or a number is treated as one shorter than `CERTAIN_CHARS`."""

_HEAD_CHARS = 256
_NAMES = lazy_pattern(
    r"(?:^|_)(?:API_?)?(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|AUTH)S?$", re.IGNORECASE
)
_HEADERS = lazy_pattern(r"auth|key|token|secret|cookie", re.IGNORECASE)
_NO_KEY = lazy_pattern(r"\s|^[/~.]")
"""A sentence, or the path of a file that holds the key."""
_WORDS = lazy_pattern(r"(?:[a-z]+|[A-Z]+|\d+)(?:[-_.][a-z]+|[-_.][A-Z]+)*")
_ESCAPE = lazy_pattern(
    r"\\{0,8}u00([0-9a-f]{2})|%([0-9a-f]{2})|&#(?:x0*([0-9a-f]{2})|0*(\d{2,3}));", re.IGNORECASE
)
_LINE_ENDS = lazy_pattern(r"\\+[nrt]?")
_SPACE = "(?:0[9a-dA-D]|1[c-fC-F]|20|85|[aA]0)"
_SPACE_IN_HTML = rf"&#(?:[xX]0*{_SPACE}|0*(?:09|1[0-3]|2[89]|3[0-2]|133|160));"
_BREAKS = (
    rf"(?:(?:\\|[uU]005[cC]|%5[cC]|&#(?:[xX]0*5[cC]|0*92);)[nrt]?|\s|(?:[uU]00|%){_SPACE}|{_SPACE_IN_HTML})*"
)
"""What may stand between two characters of a key.

No text can be divided among these in two ways, so hostile text costs no more. Possessive quantifiers would say the
same, but Python before 3.11.5 matches them wrongly.
"""


class Secrets:
    """Keys to keep out of text."""

    def __init__(self) -> None:
        self._certain: dict[str, tuple[str, ...]] = {}
        self._doubtful: dict[str, re.Pattern[str]] = {}

    def keep(self, key: str | None) -> None:
        """Keep a key that the user has registered as one."""
        key = (key or "").strip()
        # Others may be reading the tables in their threads, so they are replaced, not changed.
        if _is_certain(key):
            if key not in self._certain:
                self._certain = {**self._certain, key: tuple(_forms(key))}
        elif len(key) >= LEAST_CHARS:
            pattern = re.compile(rf"(?<!\w){re.escape(key)}(?!\w)")
            self._doubtful = {**self._doubtful, key: pattern}

    def keep_environment(self, environ: Mapping[str, str]) -> None:
        """Keep what the environment holds under names of keys, and the passwords in the URLs it names."""
        for name, value in environ.items():
            if "://" in value and "@" in value:
                self.keep_password(value)
            elif _NAMES.search(name) and not _NO_KEY.search(value.strip()):
                self._keep_certain(value)

    def keep_headers(self, headers: Mapping[str, str]) -> None:
        """Keep what headers hold that are named after keys, such as the token after `Bearer`."""
        for name, value in headers.items():
            if _HEADERS.search(name) and value.strip():
                self._keep_certain(value.split()[-1])

    def keep_password(self, url: str) -> None:
        """Keep the password of a URL."""
        try:
            password = urlsplit(url).password or ""
        except ValueError:
            return
        self._keep_certain(password)
        self._keep_certain(unquote(password))

    def _keep_certain(self, key: str) -> None:
        if _is_certain(key.strip()):
            self.keep(key)

    def mask(self, text: str, *, error: bool = False) -> str:
        """Return the text with `***` in place of each key.

        Args:
            text: Any text; JSON stays JSON.
            error: Whether it is what a stranger says about a request that failed; see `CERTAIN_CHARS`.
        """
        if self._certain:
            plain = _plain(text)
            for key, forms in self._certain.items():
                for form in forms:
                    if form in plain or (form is forms[0] and key in text):
                        text = _pattern(form).sub(MASK, text)
        if error:
            for pattern in self._doubtful.values():
                text = pattern.sub(MASK, text)
        return text

    def mask_begun(self, text: str) -> str:
        """Return a text that goes on with `***` in place of each key, and without the beginning of one at its end."""
        text = self.mask(text)
        for key in self._certain:
            for length in range(min(len(key), len(text)), LEAST_CHARS - 1, -1):
                if text.endswith(key[:length]):
                    return text[:-length]
        return text

    def mask_line(self, line: bytes) -> bytes:
        """Return a line of UTF-8 with `***` in place of each key."""
        if not self._certain:
            return line
        text = line.decode("utf-8", "surrogateescape")
        masked = self.mask(text)
        return line if masked is text else masked.encode("utf-8", "surrogateescape")

    def mask_data(self, value: T) -> T:
        """Return plain data, or a struct of it, with `***` in place of each key."""
        return self._mask_data(value) if self._certain else value

    def _mask_data(self, value: Any) -> Any:
        match value:
            case str():
                return self.mask(value)
            case list() | tuple():
                return type(value)(map(self._mask_data, value))
            case dict():
                return {self._mask_data(key): self._mask_data(entry) for key, entry in value.items()}
            case Struct():
                fields = {name: getattr(value, name) for name in value.__struct_fields__}
                changed = {name: self._mask_data(entry) for name, entry in fields.items()}
                changed = {name: entry for name, entry in changed.items() if entry != fields[name]}
                return msgspec.structs.replace(value, **changed) if changed else value
            case _:
                return value


SECRETS = Secrets()
"""Those of this process."""


def _is_certain(key: str) -> bool:
    """Whether a key cannot be mistaken for a word or a number."""
    return len(_plain(key)) >= CERTAIN_CHARS and (len(key) >= WORD_CHARS or _WORDS.fullmatch(key) is None)


def _plain(text: str) -> str:
    """Return the text with its escapes undone, and without white space and backslashes."""
    if "%" in text or "u00" in text or "&#" in text:
        text = _ESCAPE.sub(_unescape, text)
    return _squeeze(text)


def _squeeze(text: str) -> str:
    if "\\" in text:
        text = _LINE_ENDS.sub("", text)
    return "".join(text.split())


def _unescape(match: re.Match[str]) -> str:
    *hexadecimal, decimal = match.groups()
    code = int(decimal) if decimal else int(next(filter(None, hexadecimal)), 16)
    return chr(code)


def _forms(key: str) -> Iterator[str]:
    """Yield the key and what it looks like in base64, wherever in a longer text it begins."""
    head = key[:_HEAD_CHARS]
    yield (plain := _plain(head))
    # A key that has escapes in it may have been escaped once more.
    if plain != (squeezed := _squeeze(head)):
        yield squeezed
    raw = head.encode("utf-8", "surrogatepass")
    for before in range(3):
        whole = base64.b64encode(b"\0" * before + raw).decode("ascii")
        # The first characters hold bits of what stands before the key, the last one bits of what stands after it.
        core = whole[(0, 2, 3)[before] : (before + len(raw)) * 8 // 6]
        if len(core) >= CERTAIN_CHARS:
            yield core
            if core != (safe := core.replace("+", "-").replace("/", "_")):
                yield safe


@lru_cache(maxsize=256)
def _pattern(form: str) -> re.Pattern[str]:
    """Return what finds the form in text as it stands, escapes and line ends and all."""
    units = [_unit(char) for char in form]
    rest = r"[^\s\"'<>\\]*" if len(form) >= _HEAD_CHARS - 1 else ""
    return re.compile(rf"(?<!\\)\\*{_BREAKS.join(units)}{rest}")


def _unit(char: str) -> str:
    code = ord(char)
    if code > 0xFF:
        return re.escape(char)
    pair = "".join(f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in f"{code:02x}")
    html = f"&#(?:[xX]0*{pair}|0*{code});"
    return f"(?:{re.escape(char)}|[uU]00{pair}|%{pair}|{html})"
