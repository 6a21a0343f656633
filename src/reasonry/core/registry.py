"""Registries: strategies by name, at hand or brought in when they are named.

Rule: what is at hand is looked through first, so that nothing is brought in where its name suffices. What is brought in
goes by its whole name alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from ..errors import UsageError
from ..text import did_you_mean, find_name, find_named, show_value
from .strategy import Strategy

Registry = Mapping[str, Strategy[Any, Any]]
"""Strategies by canonical name."""


class LazyRegistry(Mapping[str, Strategy[Any, Any]]):
    """Strategies at hand, and others that are brought in when they are looked up.

    Iteration brings all of them in and leaves out what cannot be.

    Args:
        at_hand: By canonical name.
        find_others: Returns the names of those that can be brought in; called once, when a name is not at hand.
        load: Returns one of the others; raises UsageError if it cannot be used.
    """

    def __init__(
        self,
        at_hand: Registry,
        find_others: Callable[[], Sequence[str]],
        load: Callable[[str], Strategy[Any, Any]],
    ) -> None:
        self.at_hand = dict(at_hand)
        self.find_others, self.load = find_others, load

    @cached_property
    def others(self) -> list[str]:
        """The names of those that can be brought in."""
        return [name for name in self.find_others() if name not in self.at_hand]

    def __getitem__(self, name: str) -> Strategy[Any, Any]:
        if name in self.at_hand or name not in self.others:
            return self.at_hand[name]
        try:
            return self.load(name)
        except UsageError as error:
            raise KeyError(name) from error

    def __contains__(self, name: object) -> bool:
        return name in self.at_hand or name in self.others

    def __iter__(self) -> Iterator[str]:
        yield from self.at_hand
        yield from (name for name in self.others if self.get(name) is not None)

    def __bool__(self) -> bool:
        # Nothing is to be brought in to find out.
        return bool(self.at_hand or self.others)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def add_strategies(registry: Registry, more: Registry) -> Registry:
    """Return the registry with more strategies; one replaces another of its name."""
    if isinstance(registry, LazyRegistry):
        return LazyRegistry({**registry.at_hand, **more}, registry.find_others, registry.load)
    return {**registry, **more}


def strategies_at_hand(registry: Registry) -> Registry:
    """Return the strategies for which nothing has to be brought in."""
    return registry.at_hand if isinstance(registry, LazyRegistry) else registry


def strategy_names(registry: Registry) -> list[str]:
    """Return the names that may be used, those of strategies that are not brought in yet too."""
    return [*registry.at_hand, *registry.others] if isinstance(registry, LazyRegistry) else list(registry)


def find_strategy(name: str, strategies: Registry) -> Strategy[Any, Any] | None:
    """Return the strategy that goes by a name, alias or title, whatever its case, spaces, dashes and underscores.

    Args:
        strategies: Where to look, by canonical name.

    Raises:
        UsageError: It would have to be brought in, and cannot be used.
    """
    at_hand, written = strategies_at_hand(strategies), name.strip()
    if name in at_hand:
        return at_hand[name]
    titles = {strategy.title: strategy for strategy in at_hand.values()}
    found = find_named(written, {**titles, **_names(at_hand)})
    if found is None and isinstance(strategies, LazyRegistry):
        whole = find_name(written, strategies.others) if "/" in written else None
        return None if whole is None else strategies.load(whole)
    return found


def resolve(name: str, strategies: Registry, **details: Any) -> Strategy[Any, Any]:
    """Return the strategy that goes by a name; see `find_strategy`.

    Args:
        strategies: Where to look, by canonical name.
        details: Of the error; none: that it is about the option `strategy`.

    Raises:
        UsageError: There is none (`choices` has the names), or the package that brings it cannot be loaded.
    """
    if found := find_strategy(name, strategies):
        return found
    names = strategy_names(strategies)
    others = [whole for whole in names if "/" in whole]
    near = did_you_mean(name, [*_names(strategies_at_hand(strategies)), *others])
    # The name alone, without the package it belongs to.
    if same := [whole for whole in others if find_name(name.strip(), [whole.rpartition("/")[2]])]:
        near = f" Did you mean {' or '.join(same[:3])}?"
    message = f"There is no strategy {show_value(name)}.{near} The strategies: {', '.join(names)}."
    raise UsageError(message, choices=names, **(details or {"option": "strategy"}))


def _names(strategies: Registry) -> dict[str, Strategy[Any, Any]]:
    aliases = {alias: strategy for strategy in strategies.values() for alias in strategy.aliases}
    return {**aliases, **strategies}
