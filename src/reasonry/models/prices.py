"""What a call costs in US dollars, where a price list knows the model."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from .proxies import is_loopback

PriceOf = Callable[[int, int, int], float | None]
"""(input tokens, output tokens, cached input tokens) → US dollars, or None where it is not known."""

_SOLD = re.compile(r"(gpt-|chatgpt-|o\d|claude-|gemini-)")


def price_list(url: str, model: str) -> PriceOf:
    """Return what calls to `model` behind `url` cost.

    The provider is known by its URL. Behind another URL only names sold by one maker have a price, as a
    proxy must then be in between; an open model that someone serves by themselves has none.
    """
    host = urlsplit(url).hostname or ""
    if is_loopback(host) and not _SOLD.match(model):
        return _unknown
    from genai_prices import Usage, calc_price

    def price(input_tokens: int, output_tokens: int, cached_tokens: int) -> float | None:
        usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens, cache_read_tokens=cached_tokens)
        try:
            return float(calc_price(usage, model, provider_api_url=url).total_price)
        except LookupError:
            pass
        except ValueError:
            return None
        try:
            return float(calc_price(usage, model).total_price) if _SOLD.match(model) else None
        except (LookupError, ValueError):
            return None

    price(1, 1, 0)
    return price


def _unknown(input_tokens: int, output_tokens: int, cached_tokens: int) -> None:
    return None


def dollars(stated: Any) -> float | None:
    """Return a cost that a provider states itself, if it can be one."""
    if isinstance(stated, bool) or not isinstance(stated, int | float):
        return None
    return float(stated) if math.isfinite(stated) and 0 <= stated < 1_000_000 else None


def count(stated: Any) -> int:
    """Return a token count that a provider states, or 0 where it cannot be one."""
    if isinstance(stated, bool) or not isinstance(stated, int) or not 0 <= stated <= 1_000_000_000:
        return 0
    return stated
