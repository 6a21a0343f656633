"""The keys in use in this process, and how they are kept out of errors, logs, traces, records and streamed text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, TypeVar
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Struct

from .patterns import lazy_pattern

T = TypeVar("T")

MASK: Final = "***"
LEAST_CHARS: Final = 4
"""A shorter key is not looked for at all."""
CERTAIN_CHARS: Final = 8
"""A shorter key is looked for in errors only, as a word by itself; in other text it may be a word of the language."""
WORD_CHARS: Final = 16
"""A key of fewer characters that is spelled like words or a number is treated as one shorter than `CERTAIN_CHARS`."""

_NAMES = lazy_pattern(
    r"(?!REASONRY_TOKENS$)(?:.*_)?(?:API)?(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|AUTH)S?",
    re.IGNORECASE,
)
"""The tokens of a server's principals are not kept: the server knows only their digests."""
_HEADERS = lazy_pattern(r"auth|key|token|secret|cookie", re.IGNORECASE)
_NO_KEY = lazy_pattern(r"\s|^[/~.]")
"""A sentence, or the path of a file that holds the key."""
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
    """Keys to keep out of text."""

    def __init__(self) -> None:
        self._certain: dict[str, str] = {}
        self._doubtful: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None
        self._pattern_in_errors: re.Pattern[str] | None = None

    def keep(self, key: str | None) -> None:
        """Keep a key that the user has registered as one."""
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
        """Keep what the environment holds under names of keys, and the passwords in the URLs it names."""
        for name, value in environ.items():
            if "://" in value and "@" in value:
                self.keep_password(value)
            elif _NAMES.fullmatch(name) and not _NO_KEY.search(value.strip()):
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
        """Return the text with `***` in place of each key; JSON stays JSON.

        Args:
            error: Whether it is what a stranger says about a request that failed; see `CERTAIN_CHARS`.
        """
        pattern = self._pattern_in_errors if error else self._pattern
        return text if pattern is None else pattern.sub(MASK, text)

    def mask_until(self, text: str, end: int) -> tuple[str, str]:
        """Return the masked text up to there, or up to the end of the key that stands there, and the rest as it is."""
        for key in self._pattern.finditer(text) if self._pattern else ():
            if key.start() < end < key.end():
                end = key.end()
        return self.mask(text[:end]), text[end:]

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


def mask_keylike(text: str) -> str:
    """Return a stranger's text with `***` in place of whatever looks like a key; not for long texts."""
    return _KEYLIKE.sub(MASK, text)


def _is_certain(key: str) -> bool:
    """Whether a key cannot be mistaken for a word or a number."""
    return len(key) >= CERTAIN_CHARS and (len(key) >= WORD_CHARS or _WORDS.fullmatch(key) is None)


def _char_pattern(char: str) -> str:
    """Return a pattern for a character of a key as it is, and as JSON and URLs escape it."""
    if char.isascii() and char.isalnum():
        return char
    in_url = "".join(f"%{byte:02x}" for byte in char.encode("utf-8", "surrogatepass"))
    # JSON within JSON has more backslashes.
    return rf"(?i:\\{{0,7}}(?:{re.escape(char)}|u{ord(char):04x})|{in_url})"


def _any_of(patterns: Mapping[str, str]) -> re.Pattern[str]:
    """Return what finds any of the keys; of two that begin alike, the longer one."""
    return re.compile("|".join(patterns[key] for key in sorted(patterns, key=len, reverse=True)))
