"""Facts about models, by name: whether a model is a reasoning model, and the price of a call in US dollars.

A reasoning model reasons before it replies. It is not asked to think step by step, because its maker advises against
such prompts. Its reasoning is separate from the reply, counts as usage, and is never read as the answer.
"""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from ..engine.prices import PriceOf, no_price

SETTING = "REASONRY_REASONING_MODELS"
"""The environment variable that lists more reasoning models, separated by commas. `none` means no model at all."""

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
    """Whether a model is a reasoning model, which reasons before it replies.

    Args:
        name: The value of `--model`.
        environ: The environment. `REASONRY_REASONING_MODELS` may have only the end of a name, after a `:`, `/` or `#`.
    """
    named = [entry.strip().casefold() for entry in environ.get(SETTING, "").split(",") if entry.strip()]
    if named == ["none"]:
        return False
    written = name.casefold()
    if written in named or re.split(r"[:/#]", written)[-1] in named:
        return True
    return _KNOWN.search(name) is not None and _NOT.search(name) is None


def price_list(url: str, model: str, provider: str | None = None) -> PriceOf:
    """Return a function that computes the price of a call to `model` at `url`.

    `url` identifies the seller, or else `provider` does. If neither does, `url` counts as a proxy, and only models with
    a single maker (such as `gpt-…`) have a price. An open model on this computer has no price.
    """
    from .http_session import is_loopback

    sold = re.match(r"gpt-|chatgpt-|o\d|claude-|gemini-", model) is not None
    if is_loopback(urlsplit(url).hostname or "") and not sold and provider is None:
        return no_price
    from genai_prices import Usage, calc_price

    sellers: list[dict[str, Any]] = [{"provider_api_url": url}]
    sellers += [{"provider_id": provider}] if provider is not None else []
    sellers += [{}] if sold else []

    def price(input_tokens: int, output_tokens: int, cached_tokens: int) -> float | None:
        usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens, cache_read_tokens=cached_tokens)
        for seller in sellers:
            try:
                return float(calc_price(usage, model, **seller).total_price)
            except LookupError:
                continue
            except ValueError:
                return None
        return None

    price(1, 1, 0)
    return price
