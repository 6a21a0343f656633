"""Escape, shorten and compare texts from models and users, and match such texts to known names.

Text that is shown as Markdown keeps its lists, headings, emphasis and fenced code; its links, images and tags become
plain text. Patterns compile at first use, since compiling all patterns takes longer than many commands.

`find_name` accepts small variations in the spelling of a name, and `closest_names` suggests similar names:

Rule 1: case, spaces, dashes, underscores and a plural's `s` make no difference. Any other difference does.
Rule 2: an ambiguous spelling matches no name.
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, TypeVar, cast


class _Pattern:
    def __init__(self, text: str, flags: int) -> None:
        self._text, self._flags = text, flags

    def __getattr__(self, name: str) -> Any:
        # Called once for each attribute: the instance then has the attribute, and later lookups find it there.
        found = self.__dict__[name] = getattr(re.compile(self._text, self._flags), name)
        return found


def lazy_pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern that compiles at its first use. An invalid pattern raises an error only at that time."""
    return cast(re.Pattern[str], _Pattern(text, flags))


UNSEEN = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u2028-\u202e"
    r"\u2060-\u206f\ud800-\udfff\ufeff\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    r"\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""The invisible characters, for use between the brackets of a pattern: control characters (except line feed and tab),
format characters (bidi, zero-width, tags), separators and lone surrogates."""

_UNSEEN = lazy_pattern(f"[{UNSEEN}]")
_FENCE = lazy_pattern(r" {0,3}(`{3,}|~{3,})\s*([\w+#.-]*)([^`]*)")
_PROSE_UNSAFE = lazy_pattern(r"[\\`<\[\]&~]|/(?=/)|(?<=/)/")
_INLINE_UNSAFE = lazy_pattern(rf"[*_>#|]|{_PROSE_UNSAFE.pattern}")


def escape_unseen(text: str) -> str:
    r"""Replace each invisible character (`UNSEEN`) with an escape such as `\u202e` or `\U000e0041`."""
    return text if text.isascii() and text.isprintable() else _UNSEEN.sub(_spell_out, text)


def escape_json(text: str) -> str:
    r"""Replace each invisible character (`UNSEEN`) in JSON text with a `\u` escape of JSON."""
    return _UNSEEN.sub(_escape, text)


def shorten(text: str, limit: int, *, one_line: bool = False) -> str:
    """Truncate a text that is longer than a limit, and append the total length.

    Args:
        one_line: Whether to put the text on one line instead. A truncated line has at most `limit` characters, and ends
            with a whole word and "…". If the second half of the line has no space, the line is cut within a word.
    """
    if not one_line:
        return text if len(text) <= limit else f"{text[:limit]}… ({len(text):,} characters in all)"
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    words = line[:limit].rpartition(" ")[0]
    return (words if 2 * len(words) >= limit else line[: max(limit - 1, 0)]) + "…"


def strip_blank_lines(text: str) -> str:
    """Remove blank lines around a text, and spaces at its end. A text of one line also loses its indentation."""
    inside = text.strip()
    return text[text.rfind("\n", 0, text.find(inside)) + 1 :].rstrip() if "\n" in inside else inside


def show_value(value: Any) -> str:
    """Format a value for an error message. The result is short and valid Unicode. A large value takes no longer."""
    match value:
        case None | True | False:
            return {None: "null", True: "true", False: "false"}[value]
        case int() if value.bit_length() > 64:
            return "a number that is too large"
        case str():
            text = value if len(value) <= 40 else value[:40] + "…"
            return repr(text.encode("utf-8", "backslashreplace").decode())
        case int() | float():
            return repr(value)
        case dict():
            return "an object"
        case list() | tuple():
            return "a list"
        case _:
            return f"a {type(value).__name__}"


def prose_lines(text: str) -> Iterator[str]:
    """Yield the lines of a text as Markdown that is safe to embed. Links and tags outside code are escaped."""
    lines = iter(escape_unseen(text.replace("\r\n", "\n").replace("\r", "\n")).expandtabs(4).split("\n"))
    for line in lines:
        opened = _FENCE.fullmatch(line)
        if opened is None:
            # Backticks are escaped too, because the backslashes would be visible inside a code span.
            yield _PROSE_UNSAFE.sub(r"\\\g<0>", line)
            continue
        code: list[str] = []
        for inside in lines:
            # After four spaces, a fence is code and does not close the block.
            marks = inside.strip(" ")
            if marks.startswith(opened[1]) and len({*marks}) == 1 and not inside.startswith("    "):
                break
            code.append(inside)
        fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", "\n".join(code))), default=0))
        yield from ("", fence + opened[2], *code, fence)


def inline_text(text: str) -> str:
    """Convert a text to one line of Markdown in which all markup is escaped."""
    return _INLINE_UNSAFE.sub(r"\\\g<0>", escape_unseen(" ".join(text.split())))


def _spell_out(match: re.Match[str]) -> str:
    point = ord(match[0])
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


def _escape(match: re.Match[str]) -> str:
    return re.sub("....", r"\\u\g<0>", match[0].encode("utf-16-be", "surrogatepass").hex())


def display_line(text: str, width: int) -> str:
    """Return a text as one line of at most `width` characters, with invisible characters escaped."""
    return shorten(escape_unseen(" ".join(text.split())), width, one_line=True)


def nearest_difference(text: str, others: Iterable[str]) -> tuple[int, str, str]:
    """Find the first difference between `text` and the most similar text in `others`.

    Returns the position of the difference (from 1), and two excerpts around it: of the other text and of `text`.
    """
    matcher = difflib.SequenceMatcher(b=text, autojunk=False)

    def likeness(other: str) -> float:
        matcher.set_seq1(other)
        return matcher.quick_ratio()

    near = max(others, key=likeness, default="")
    place = next(
        (n for n, (a, b) in enumerate(zip(near, text, strict=False)) if a != b), min(len(near), len(text))
    )
    start = max(0, place - 60)
    was, now = (f"{'…' if start else ''}{display_line(each[start:], 300)}" for each in (near, text))
    return place + 1, was, now


def without_surrogates(text: str) -> str:
    """Make a text encodable: join surrogate pairs, and replace lone surrogates."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


REPEATED_CHARS: Final = 300
"""How many characters at the end of a cut-off text are checked for repetition."""
_TIMES: Final = 4
"""How many equal pieces must follow one another to count as repetition."""


def repeats_itself(text: str, chars: int = REPEATED_CHARS) -> bool:
    """Whether the last `chars` characters of a text repeat one piece at least four times."""
    end, longest = text[-chars:], chars // _TIMES
    if len(end) < chars:
        return False
    period = chars - longest - end.rfind(end[-longest:], 0, -1)
    return period <= longest and end[period:] == end[:-period]


T = TypeVar("T")

MAX_WRITTEN_CHARS: Final = 100
"""A text with more characters than this never counts as a misspelled name."""
_WORD: Final = lazy_pattern(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


@lru_cache(maxsize=1_000)
def plain_name(key: str) -> str:
    """Normalize a name, so that `Step-Back Question` and `step_back_question` are equal."""
    return re.sub(r"[\W_]+", "", key.casefold())


def find_named(written: str, named: Mapping[str, T]) -> T | None:
    """Find an object by a name that a user or model wrote. If no object or several objects match, return None."""
    if written in named:
        return named[written]
    if len(written) > MAX_WRITTEN_CHARS:
        return None
    for ending in ("", "s"):
        wanted = plain_name(written).removesuffix(ending)
        found = [value for name, value in named.items() if plain_name(name).removesuffix(ending) == wanted]
        if wanted and found:
            return found[0] if all(value is found[0] or value == found[0] for value in found) else None
    return None


def find_name(written: str, names: Iterable[str]) -> str | None:
    """Find a known name by the name that a user or model wrote. If no name or several names match, return None."""
    return find_named(written, {name: name for name in names})


def closest_names(written: str, names: Iterable[str], maximum: int = 3) -> list[str]:
    """Return similar names, most similar first.

    If no name is similar, return the names that share the most word stems, as `verify` and `verification` do.
    """
    if len(written) > MAX_WRITTEN_CHARS:
        return []
    by_plain = {plain_name(name): name for name in names}
    near = difflib.get_close_matches(plain_name(written), by_plain, n=maximum, cutoff=0.75)
    if near:
        return [by_plain[plain] for plain in near]
    stems = _stems(written)
    akin = {name: len(stems & _stems(name)) for name in by_plain.values()}
    return sorted(filter(akin.get, akin), key=lambda name: -akin[name])[:maximum]


def did_you_mean(written: str, names: Iterable[str], heading: str = "") -> str:
    """Return a suggestion for an error about an unknown name. The suggestion begins with a space, or is empty.

    Args:
        heading: The words before a list of all names, such as `Its options`. The list appears if no name is similar.
    """
    known = [*names]
    if found := closest_names(written, known):
        return f" Did you mean {' or '.join(found)}?"
    return f" {heading}: {', '.join(known) or 'none'}." if heading else ""


def _stems(name: str) -> set[str]:
    """Return the stems of the significant words in a name such as `thoughtNumber`."""
    return {word[:4].lower() for word in _WORD.findall(name)} - {"of", "is", "a", "the"}
