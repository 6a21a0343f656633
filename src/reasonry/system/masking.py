"""Masks secret keys, such as API keys and passwords, in errors, logs, traces, records and streamed text."""

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
"""The minimum length of a key. A shorter key is never masked."""
CERTAIN_CHARS: Final = 8
"""The minimum length of a key that is masked everywhere. A shorter key may be an ordinary word, so it is masked only in
error messages, and only as a whole word."""
WORD_CHARS: Final = 16
"""If a key looks like words or a number and is shorter than this, it counts as shorter than `CERTAIN_CHARS`."""

_NAMES = lazy_pattern(
    r"(?!REASONRY_TOKENS$)(?:.*_)?(?:API)?(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|AUTH)S?",
    re.IGNORECASE,
)
"""Matches variables whose values are keys, but not `REASONRY_TOKENS`: a server keeps only digests of tokens."""
_HEADERS = ("auth", "key", "token", "secret", "cookie")
_PATHS = ("/", "~", ".")
"""The beginnings of file paths. A value that begins like a path is the path of a key file, not a key."""
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
    """A collection of secret keys, and methods that mask them in texts."""

    def __init__(self) -> None:
        self._certain: dict[str, str] = {}
        self._doubtful: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None
        self._pattern_in_errors: re.Pattern[str] | None = None

    def keep(self, key: str | None) -> None:
        """Register a secret key of the user, so that it is masked from now on."""
        key = (key or "").strip()
        if len(key) < LEAST_CHARS or key in self._certain or key in self._doubtful:
            return
        # Other threads may be reading the tables, so the tables are replaced, not changed.
        if _is_certain(key):
            self._certain = {**self._certain, key: "".join(map(_char_pattern, key))}
            self._pattern = _any_of(self._certain)
        else:
            self._doubtful = {**self._doubtful, key: rf"(?<!\w){re.escape(key)}(?!\w)"}
        self._pattern_in_errors = _any_of(self._certain | self._doubtful)

    def keep_environment(self, environ: Mapping[str, str]) -> None:
        """Register the keys in environment variables: values with names such as `API_KEY`, and passwords in URLs."""
        for name, value in environ.items():
            if "://" in value and "@" in value:
                self.keep_password(value)
            elif _NAMES.fullmatch(name) and len(value.split()) == 1 and not value.strip().startswith(_PATHS):
                self._keep_certain(value)

    def keep_headers(self, headers: Mapping[str, str]) -> None:
        """Register the keys in HTTP headers such as `Authorization`. A scheme such as `Bearer` is left out."""
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
        """Replace each registered key in a text with `***`. A JSON text remains valid JSON.

        Args:
            error: Whether the text is an error message from outside. If so, keys under `CERTAIN_CHARS` are masked too.
        """
        pattern = self._pattern_in_errors if error else self._pattern
        return text if pattern is None else pattern.sub(MASK, text)

    def mask_until(self, text: str, end: int) -> tuple[str, str]:
        """Split a text at `end`, or after a key that spans `end`. Return the masked first part and the rest."""
        for key in self._pattern.finditer(text) if self._pattern else ():
            if key.start() < end < key.end():
                end = key.end()
        return self.mask(text[:end]), text[end:]

    def mask_data(self, value: T) -> T:
        """Replace each registered key with `***` in all strings of plain data or a struct."""
        return map_texts(value, self.mask) if self._certain else value


SECRETS = Secrets()
"""The secret keys that this process knows."""


def map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return plain data or a struct with `change` applied to every string in it, including the keys of mappings."""
    match value:
        case str():
            return change(value)
        case list() | tuple():
            return type(value)([map_texts(entry, change) for entry in value])
        case dict():
            return {map_texts(key, change): map_texts(entry, change) for key, entry in value.items()}
        case Struct():
            fields = msgspec.structs.asdict(value)
            changed = {name: new for name, old in fields.items() if (new := map_texts(old, change)) != old}
            return msgspec.structs.replace(value, **changed) if changed else value
        case _:
            return value


def mask_keylike(text: str) -> str:
    """Mask each word that looks like a secret key. The text must be short."""
    return _KEYLIKE.sub(MASK, text)


def _is_certain(key: str) -> bool:
    """Whether a key cannot be an ordinary word or number."""
    return len(key) >= CERTAIN_CHARS and (len(key) >= WORD_CHARS or _WORDS.fullmatch(key) is None)


def _char_pattern(char: str) -> str:
    """Return a regular expression that matches a character of a key, plain or escaped as in JSON or a URL."""
    if char.isascii() and char.isalnum():
        return char
    in_url = "".join(f"%{byte:02x}" for byte in char.encode("utf-8", "surrogatepass"))
    # JSON within JSON has more backslashes.
    return rf"(?i:\\{{0,7}}(?:{re.escape(char)}|u{ord(char):04x})|{in_url})"


def _any_of(patterns: Mapping[str, str]) -> re.Pattern[str]:
    """Return a regular expression that matches any of the keys. Longer keys are tried first."""
    return re.compile("|".join(patterns[key] for key in sorted(patterns, key=len, reverse=True)))
