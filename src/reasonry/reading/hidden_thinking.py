"""What a writer thought before a reply, where it stands in tags or in channels."""

from __future__ import annotations

import re

from ..patterns import lazy_pattern

_THINKING = lazy_pattern(
    r"<(think|thinking|thought|reflection)>.*?</\1>|\[THINK\].*?\[/THINK\]", re.DOTALL | re.IGNORECASE
)
_THINKING_END = lazy_pattern(r"\A.*</(?:think|thinking|thought|reflection)>", re.DOTALL | re.IGNORECASE)
_THINKING_OPEN = lazy_pattern(r"<(?:think|thinking)>.*\Z", re.DOTALL | re.IGNORECASE)
_FINAL_CHANNEL = lazy_pattern(r"<\|channel\|>final\b")
_CHANNEL = lazy_pattern(r"<\|channel\|>final\b[^<]*<\|message\|>")
_OTHER_CHANNEL = lazy_pattern(
    r"<\|channel\|>(?:analysis|commentary)(?![^<]* to=)\b[^<]*<\|message\|>.*?(?:<\|(?:end|return)\|>|\Z)",
    re.DOTALL,
)
_CHANNEL_TAG = lazy_pattern(r"<\|(?:start|end|return|call)\|>(?:assistant)?")


def without_thinking(text: str) -> str:
    """Return a reply without what its writer thought before it, where that stands in tags or in channels."""
    if "<|" in text:
        # Of channels, `final` is the reply; a text in none of them stands for itself.
        *_, last = _CHANNEL.split(text)
        text = _CHANNEL_TAG.sub(
            "",
            last if "<|channel|>" in text and _FINAL_CHANNEL.search(text) else _OTHER_CHANNEL.sub("", text),
        )
        text = text.strip()
    if "<" not in text:
        return text
    left = _THINKING_END.sub("", text)
    return _THINKING_OPEN.sub("", _THINKING.sub("", left)).strip() if left == text else left.strip()
