"""Find built-in strategies and plugins by name. A plugin loads on first use.

Rule: the search begins with built-in strategies, so their names load no plugin. A plugin is found only as PACKAGE/NAME.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from ..errors import UsageError
from ..text import did_you_mean, find_name, find_named, show_value
from .strategy import Strategy

Registry = Mapping[str, Strategy[Any, Any]]
"""Maps the canonical name of each strategy to the strategy."""


class LazyRegistry(Mapping[str, Strategy[Any, Any]]):
    """Loaded strategies, and plugins that load on first use.

    Iteration loads all plugins and skips any plugin that fails to load.

    Args:
        find_others: A function that returns the names of the plugins. It is called once, for the first name not loaded.
        load: A function that loads a plugin's strategy, or raises UsageError if the strategy is unusable.
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
        """The names of the plugins' strategies."""
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
        # The truth test of Mapping would load all plugins.
        return bool(self.at_hand or self.others)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def add_strategies(registry: Registry, more: Registry) -> Registry:
    """Return the registry with more strategies, which replace strategies of the same name."""
    if isinstance(registry, LazyRegistry):
        return LazyRegistry({**registry.at_hand, **more}, registry.find_others, registry.load)
    return {**registry, **more}


def strategies_at_hand(registry: Registry) -> Registry:
    """Return the strategies that are already loaded."""
    return registry.at_hand if isinstance(registry, LazyRegistry) else registry


def strategy_names(registry: Registry) -> list[str]:
    """Return the names of all strategies, plugins included."""
    return [*registry.at_hand, *registry.others] if isinstance(registry, LazyRegistry) else list(registry)


def find_strategy(name: str, strategies: Registry) -> Strategy[Any, Any] | None:
    """Find a strategy by name, alias or title, ignoring case, spaces, dashes and underscores.

    Raises:
        UsageError: The name belongs to a plugin that fails to load.
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
    """Find a strategy with `find_strategy`. If there is no such strategy, raise an error with `details`.

    Raises:
        UsageError: There is no such strategy (`choices` lists the names), or its plugin fails to load.
    """
    if found := find_strategy(name, strategies):
        return found
    names = strategy_names(strategies)
    others = [whole for whole in names if "/" in whole]
    known = [*_names(strategies_at_hand(strategies)), *others]
    near = did_you_mean(name, known) or f" The strategies: {', '.join(names)}."
    # The user may have named a plugin's strategy without its package.
    if same := [whole for whole in others if find_name(name.strip(), [whole.rpartition("/")[2]])]:
        near = f" Did you mean {' or '.join(same[:3])}?"
    message = f"there is no strategy {show_value(name)}.{near}"
    raise UsageError(message, choices=names, **(details or {"option": "strategy"}))


def _names(strategies: Registry) -> dict[str, Strategy[Any, Any]]:
    aliases = {alias: strategy for strategy in strategies.values() for alias in strategy.aliases}
    return {**aliases, **strategies}
