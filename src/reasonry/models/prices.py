"""What a call costs in US dollars, where a price list knows the model."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from ..core.metering import PriceOf, no_price
from .proxies import is_loopback

_SOLD = re.compile(r"(gpt-|chatgpt-|o\d|claude-|gemini-)")


def price_list(url: str, model: str, provider: str | None = None) -> PriceOf:
    """Return what calls to `model` behind `url` cost.

    The seller is known by the URL, else as `provider`. Behind another URL only names sold by one maker have a price, as
    a proxy must then be in between; an open model that someone serves by themselves has none.
    """
    sold = bool(_SOLD.match(model))
    if is_loopback(urlsplit(url).hostname or "") and not sold and provider is None:
        return no_price
    from genai_prices import Usage, calc_price

    def sellers() -> Iterator[dict[str, Any]]:
        yield {"provider_api_url": url}
        if provider is not None:
            yield {"provider_id": provider}
        if sold:
            yield {}

    def price(input_tokens: int, output_tokens: int, cached_tokens: int) -> float | None:
        usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens, cache_read_tokens=cached_tokens)
        for seller in sellers():
            try:
                return float(calc_price(usage, model, **seller).total_price)
            except LookupError:
                continue
            except ValueError:
                return None
        return None

    price(1, 1, 0)
    return price
