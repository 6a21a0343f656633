"""How strategies and models are named where OpenAI's clients name a model: `STRATEGY?OPTION=VALUE&…@MODEL`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote

from ....app.allow_list import AllowList
from ....core.registry import Registry, find_strategy, strategies_at_hand
from ....errors import NotFoundError, UsageError
from ....reading.names import did_you_mean
from ....strategies.choice import AUTO

MAX_NAME_CHARS = 2_000


class Named(NamedTuple):
    """What a name stands for; `model` is None where the operator's default is meant."""

    strategy: str
    model: str | None
    options: dict[str, Any]


def model_ids(strategies: Registry, allowed: AllowList) -> list[str]:
    """Return the names that may be asked for, those with a model after those without."""
    names = [
        AUTO,
        *(name for name, strategy in strategies_at_hand(strategies).items() if strategy.is_driven),
    ]
    return [*names, *(f"{name}@{model}" for model in allowed.model_names for name in names)]


def read_name(name: str, strategies: Registry, allowed: AllowList) -> Named:
    """Return what a name stands for.

    Raises:
        NotFoundError: `model_not_found`: there is no such strategy, or the operator has not listed the model.
        UsageError: Its options cannot be read.
    """
    if len(name) > MAX_NAME_CHARS:
        raise NotFoundError("the model's name is too long", code="model_not_found", field="model")
    head, at, model = name.partition("@")
    written, mark, options = head.partition("?")
    written, model = written.strip(), model.strip()
    strategy = AUTO if written.lower() == AUTO else _strategy(written, strategies)
    if at and model not in allowed.model_names:
        raise NotFoundError(
            f"there is no model {model[:100]!r} here; the operator has listed: {', '.join(allowed.model_names)}",
            code="model_not_found",
            field="model",
            choices=allowed.model_names,
        )
    return Named(strategy, model if at else None, dict(_options(options)) if mark else {})


def written_name(strategy: str, model: str | None, options: Mapping[str, Any]) -> str:
    """Return the name that stands for these."""
    asked = "&".join(f"{quote(key)}={quote(str(value))}" for key, value in options.items())
    return f"{strategy}{'?' if asked else ''}{asked}{'' if model is None else f'@{model}'}"


def _strategy(name: str, strategies: Registry) -> str:
    found = find_strategy(name, strategies) if name else None
    if found is not None and found.is_driven:
        return found.name
    choices = [AUTO, *(each.name for each in strategies_at_hand(strategies).values() if each.is_driven)]
    raise NotFoundError(
        f"there is no strategy {name[:100]!r}.{did_you_mean(name, choices)} A model is named STRATEGY or "
        f"STRATEGY@MODEL, where STRATEGY is one of: {', '.join(choices)}",
        code="model_not_found",
        field="model",
        choices=choices,
    )


def _options(text: str) -> Iterator[tuple[str, str]]:
    try:
        pairs = parse_qsl(text, keep_blank_values=True, strict_parsing=True, max_num_fields=50)
    except ValueError:
        message = "options in a model's name are written ?NAME=VALUE&NAME=VALUE, before the @"
        raise UsageError(message, field="model") from None
    yield from pairs
