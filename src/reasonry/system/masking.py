"""Masks the keys of this process in errors, logs, traces, records and streamed text."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Struct

from ..text import lazy_pattern

T = TypeVar("T")

MASK: Final = "***"
LEAST_CHARS: Final = 4
"""The length from which a key is masked at all."""
CERTAIN_CHARS: Final = 8
"""The length from which a key is masked everywhere. A shorter key may be an ordinary word, so it is masked in errors
only, as a whole word."""
WORD_CHARS: Final = 16
"""The length below which a key that looks like words or a number is treated as shorter than `CERTAIN_CHARS`."""

_NAMES = lazy_pattern(
    r"(?!REASONRY_TOKENS$)(?:.*_)?(?:API)?(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|AUTH)S?",
    re.IGNORECASE,
)
"""The tokens of a server's principals are not registered: the server knows only their digests."""
_HEADERS = ("auth", "key", "token", "secret", "cookie")
_PATHS = ("/", "~", ".")
"""The beginnings of paths: the name of a file with a key is no key."""
_WORDS = lazy_pattern(r"(?:[a-z]+|[A-Z]+|\d+)(?:[-_.][a-z]+|[-_.][A-Z]+)*")

_KEYLIKE = lazy_pattern(
    r"""(?ix)
    \b(?:sk|pk|rk|xai|gsk|hf|r8|sess|key)[-_][a-z0-9*._-]{6,}   # the forms that providers give their keys
    | \bAIza[\w-]{10,}
    | \bya29\.[\w.-]{10,}
    | \bAKIA[0-9A-Z]{12,}
    | \beyJ[\w-]{10,}\.[\w.-]+
    | (?<=bearer\s)\S+
    | (?<=key=)[^\s&"']+ | (?<=token=)[^\s&"']+
    | (?<=://)[^\s/@]+(?=@)
    | \b(?=[\w-]*\d)(?=[\w-]*[a-z])[\w-]{32,}\b                  # long and random enough to be one
    """
)


class Secrets:
    """Keys to mask in text."""

    def __init__(self) -> None:
        self._certain: dict[str, str] = {}
        self._doubtful: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None
        self._pattern_in_errors: re.Pattern[str] | None = None

    def keep(self, key: str | None) -> None:
        """Register a key of the user's."""
        key = (key or "").strip()
        if len(key) < LEAST_CHARS or key in self._certain or key in self._doubtful:
            return
        # Others may be reading the tables in their threads, so they are replaced, not changed.
        if _is_certain(key):
            self._certain = {**self._certain, key: "".join(map(_char_pattern, key))}
            self._pattern = _any_of(self._certain)
        else:
            self._doubtful = {**self._doubtful, key: rf"(?<!\w){re.escape(key)}(?!\w)"}
        self._pattern_in_errors = _any_of(self._certain | self._doubtful)

    def keep_environment(self, environ: Mapping[str, str]) -> None:
        """Register the values of variables with names of keys, and the passwords in URLs."""
        for name, value in environ.items():
            if "://" in value and "@" in value:
                self.keep_password(value)
            elif _NAMES.fullmatch(name) and len(value.split()) == 1 and not value.strip().startswith(_PATHS):
                self._keep_certain(value)

    def keep_headers(self, headers: Mapping[str, str]) -> None:
        """Register the values of headers with names of keys, such as the token after `Bearer`."""
        for name, value in headers.items():
            if any(word in name.casefold() for word in _HEADERS) and value.strip():
                self._keep_certain(value.split()[-1])

    def keep_password(self, url: str) -> None:
        """Register the password of a URL."""
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
        """Replace each key by `***`. JSON stays JSON.

        Args:
            error: Whether the text is a foreign error message; see `CERTAIN_CHARS`.
        """
        pattern = self._pattern_in_errors if error else self._pattern
        return text if pattern is None else pattern.sub(MASK, text)

    def mask_until(self, text: str, end: int) -> tuple[str, str]:
        """Mask a text up to a position, or to the end of a key at that position. Also returns the rest unchanged."""
        for key in self._pattern.finditer(text) if self._pattern else ():
            if key.start() < end < key.end():
                end = key.end()
        return self.mask(text[:end]), text[end:]

    def mask_data(self, value: T) -> T:
        """Replace each key by `***` in plain data or a struct."""
        return map_texts(value, self.mask) if self._certain else value


SECRETS = Secrets()
"""The keys of this process."""


def map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Change every text in plain data or a struct, the names of members included."""
    match value:
        case str():
            return change(value)
        case list() | tuple():
            return type(value)([map_texts(entry, change) for entry in value])
        case dict():
            return {map_texts(key, change): map_texts(entry, change) for key, entry in value.items()}
        case Struct():
            fields = {name: getattr(value, name) for name in value.__struct_fields__}
            changed = {name: map_texts(entry, change) for name, entry in fields.items()}
            changed = {name: entry for name, entry in changed.items() if entry != fields[name]}
            return msgspec.structs.replace(value, **changed) if changed else value
        case _:
            return value


def mask_keylike(text: str) -> str:
    """Replace words that look like keys by `***` in a foreign text. Not for long texts."""
    return _KEYLIKE.sub(MASK, text)


def _is_certain(key: str) -> bool:
    """Whether a key cannot be an ordinary word or number."""
    return len(key) >= CERTAIN_CHARS and (len(key) >= WORD_CHARS or _WORDS.fullmatch(key) is None)


def _char_pattern(char: str) -> str:
    """Return a pattern for a character of a key, plain or escaped in JSON or a URL."""
    if char.isascii() and char.isalnum():
        return char
    in_url = "".join(f"%{byte:02x}" for byte in char.encode("utf-8", "surrogatepass"))
    # JSON within JSON has more backslashes.
    return rf"(?i:\\{{0,7}}(?:{re.escape(char)}|u{ord(char):04x})|{in_url})"


def _any_of(patterns: Mapping[str, str]) -> re.Pattern[str]:
    """Return a pattern for all keys, longer keys first."""
    return re.compile("|".join(patterns[key] for key in sorted(patterns, key=len, reverse=True)))
