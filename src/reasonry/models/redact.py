"""Keeping secrets, and whatever else a stranger's text may hold, out of what people are shown."""

from __future__ import annotations

import re

from ..masking import MASK, SECRETS, Secrets

MAX_SHOWN = 300

_KEYLIKE = re.compile(
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
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]+")


def redact(text: str, secrets: Secrets = SECRETS) -> str:
    """Return a stranger's text fit to be shown: no keys, no control characters, one short line.

    Besides the known keys, whatever looks like one becomes `***`.
    """
    text = _KEYLIKE.sub(MASK, secrets.mask(text, error=True)[: MAX_SHOWN * 20])
    text = " ".join(_CONTROL.sub(" ", text).encode("utf-8", "replace").decode().split())
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"
