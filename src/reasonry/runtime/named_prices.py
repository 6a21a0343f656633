"""Prices that a user names, and the limits on dollars that need a price."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from ..core.metering import PriceOf, is_known, unpriced
from ..errors import UsageError
from .ports import Model

_PRICE = re.compile(
    r"(?:(?P<model>.+)=)?(?P<taken>\d{1,9}(?:\.\d{1,9})?)/(?P<made>\d{1,9}(?:\.\d{1,9})?)", re.DOTALL
)


class Price(Struct, frozen=True):
    """US dollars per million tokens; cached ones cost like others."""

    taken: float
    made: float

    def __call__(self, input_tokens: int, output_tokens: int, cached_tokens: int) -> float:
        """Return what a call costs."""
        return (self.taken * input_tokens + self.made * output_tokens) / 1_000_000


class Prices(Struct, frozen=True):
    """The prices a user named: of one model, or (`""`) of all others."""

    named: dict[str, Price] = {}

    @classmethod
    def read(cls, specs: Iterable[str]) -> Prices:
        """Read what `--price` takes: `IN/OUT` or `MODEL=IN/OUT`.

        Raises:
            UsageError: One is neither, or a model is priced twice.
        """
        named: dict[str, Price] = {}
        for spec in specs:
            found = _PRICE.fullmatch(spec.strip()) if isinstance(spec, str) else None  # pyright: ignore[reportUnnecessaryIsInstance]
            if found is None:
                message = f"a price is IN/OUT or MODEL=IN/OUT, dollars per million tokens, like 0.25/2; got {spec!r}"
                raise UsageError(message, option="price")
            model = (found["model"] or "").strip()
            if model in named:
                raise UsageError(f"the price of {model or 'all models'} is named twice", option="price")
            named[model] = Price(float(found["taken"]), float(found["made"]))
        return cls(named)

    def of(self, model: Model) -> PriceOf | None:
        """Return the price the user named for a model, if one."""
        return self.named.get(model.name, self.named.get(""))

    def known(self, model: Model) -> PriceOf:
        """Return what a model costs, as far as anybody says."""
        return self.of(model) or getattr(model, "price", unpriced)


def check_priced(limit: str | None, models: Sequence[Model], prices: Prices) -> None:
    """Let a limit on dollars pass only where every model has a price; otherwise it would hold nothing.

    Args:
        limit: What it is called where the user set it; None: there is none.

    Raises:
        UsageError: `price_unknown`.
    """
    unknown = sorted({one.name for one in models if not (_is_free(one) or is_known(prices.known(one)))})
    if limit is None or not unknown:
        return
    raise UsageError(
        f"{limit} is a limit on dollars, and the price of {', '.join(unknown)} is not known: name it with price "
        "IN/OUT (--price, dollars per million tokens; 0/0 if it costs nothing), or limit tokens or calls instead",
        code="price_unknown",
        option=limit,
        models=unknown,
    )


def _is_free(model: Model) -> bool:
    return bool(getattr(model, "is_free", False))
