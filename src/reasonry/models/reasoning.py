"""Which models reason by themselves before they reply: known by their name, or named by the operator.

They are not asked to think step by step: they have done so when they reply, and their makers advise against it. What
they think comes apart from the reply; it is counted, and never read as the answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

SETTING = "REASONRY_REASONING_MODELS"
"""Names of models that reason by themselves, comma-separated; `none`: none does."""

_KNOWN = re.compile(
    r"(?:^|[:/#])(?:"
    r"o[1-9](?:-[\w.-]+)?|gpt-(?:[5-9]|oss)[\w.:-]*|codex-[\w.-]+"
    r"|deepseek-(?:r\d|reasoner)[\w.:-]*|qwq[\w.:-]*|magistral[\w.:-]*|grok-[4-9][\w.-]*|gemini-(?:2\.5|[3-9])[\w.-]*"
    r"|glm-(?:4\.[5-9]|[5-9]|z1)[\w.:-]*|minimax-m[\w.-]+|phi-4-reasoning[\w.:-]*"
    r"|[\w.-]*(?:thinking|reasoner|reasoning|-r1)(?:[-.:]\w[\w.-]*)?"
    r")$",
    re.IGNORECASE,
)
_NOT = re.compile(r"non-?(?:thinking|reasoning)|(?:^|[:/#])gpt-5[\w.-]*-chat", re.IGNORECASE)


def reasons_by_itself(name: str, environ: Mapping[str, str]) -> bool:
    """Whether a model reasons by itself.

    Args:
        name: As it stands after `--model`; the part after its last `:`, `/` or `#` will do in the setting.
        environ: Where the operator's setting is looked up.
    """
    named = [entry.strip().casefold() for entry in environ.get(SETTING, "").split(",") if entry.strip()]
    if named == ["none"]:
        return False
    written = name.casefold()
    if written in named or re.split(r"[:/#]", written)[-1] in named:
        return True
    return _KNOWN.search(name) is not None and _NOT.search(name) is None
