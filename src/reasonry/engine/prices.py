"""Prices of calls, and the check that a run with a limit on dollars has a price for every model."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Self

from msgspec import Struct

from ..errors import UsageError
from .journal import CALLER
from .ports import Model

PriceOf = Callable[[int, int, int], float | None]
"""(input tokens, output tokens, cached input tokens) → US dollars, or None for an unknown price."""

_AMOUNT = r"\d{1,9}(?:\.\d{1,9})?"
_PRICE = re.compile(rf"(?:(?P<model>.+)=)?(?P<taken>{_AMOUNT})/(?P<made>{_AMOUNT})", re.DOTALL)


def no_price(input_tokens: int, output_tokens: int, cached_tokens: int) -> None:
    """The `PriceOf` for models whose price is unknown."""


class Price(Struct, frozen=True):
    """A price in US dollars per million input tokens (`taken`) and per million output tokens (`made`)."""

    taken: float
    made: float

    def __call__(self, input_tokens: int, output_tokens: int, cached_tokens: int) -> float:
        """Return the cost of a call. Cached input tokens cost as much as other input tokens."""
        return (self.taken * input_tokens + self.made * output_tokens) / 1_000_000

    def __str__(self) -> str:
        """Return the price in the format that `Prices.read` accepts."""
        taken, made = (f"{amount:.9f}".rstrip("0").rstrip(".") for amount in (self.taken, self.made))
        return f"{taken}/{made}"


class Prices(Struct, frozen=True):
    """Maps the names of models to the prices that a user set. The name `""` stands for all other models."""

    named: dict[str, Price] = {}

    @classmethod
    def read(cls, specs: Iterable[str]) -> Self:
        """Read the values of `--price`: `IN/OUT` or `MODEL=IN/OUT`.

        Raises:
            UsageError: A spec has neither form, or a model is priced twice.
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

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Self:
        """Read the default prices from `REASONRY_PRICE`, or raise UsageError."""
        try:
            return cls.read(spec for spec in environ.get("REASONRY_PRICE", "").split(",") if spec.strip())
        except UsageError as error:
            raise UsageError(f"REASONRY_PRICE: {error.message}", option="REASONRY_PRICE") from None

    def of(self, model: Model) -> Price | None:
        """Return the user's price for a model, if any."""
        return None if model.name == CALLER else self.named.get(model.name, self.named.get(""))

    def price_of(self, model: Model) -> PriceOf:
        """Return the user's price for a model. If the user set no price, return the model's own price."""
        return self.of(model) or getattr(model, "price", no_price)


def fix_prices(layers: Sequence[Prices], models: Sequence[Model]) -> tuple[str, ...]:
    """Return a spec `NAME=IN/OUT` for each model with a price. Earlier `layers` take precedence."""
    priced = {model.name: next((p for layer in layers if (p := layer.of(model))), None) for model in models}
    return tuple(f"{name}={price}" for name, price in priced.items() if price is not None)


def check_priced(limit: str, models: Iterable[Model], prices: Prices) -> None:
    """Check that every model has a price, because a limit on dollars needs the prices.

    A program's own model without `price` passes, since its answers state the dollars. The error names `limit`.

    Raises:
        UsageError: `price_unknown`: the price of a model is not known.
    """
    priced = {model.name: prices.of(model) or getattr(model, "price", None) for model in models}
    unknown = sorted(name for name, price in priced.items() if price and price(1, 1, 0) is None)
    if not unknown:
        return
    if CALLER in unknown:
        message = f"{limit} needs a price, but the caller answers this run's questions; limit calls or seconds instead"
    else:
        message = (
            f"{limit} needs the price of {', '.join(unknown)}: add price IN/OUT (--price; dollars per million tokens, "
            "0/0 if free), or use max_calls (--max-calls)"
        )
    raise UsageError(message, code="price_unknown", option=limit, models=unknown)
