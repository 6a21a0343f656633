"""Patterns are compiled at their first use, so here each of them is used once."""

import importlib
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import reasonry
from reasonry import text
from reasonry.text import lazy_pattern


def patterns_in(value: Any) -> Iterator[Any]:
    if isinstance(value, text._Pattern):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from patterns_in(item)
    elif isinstance(value, dict):
        yield from patterns_in([*value, *value.values()])


def test_every_pattern_of_the_package_can_be_compiled() -> None:
    names = [
        module.name
        for module in pkgutil.walk_packages(reasonry.__path__, "reasonry.")
        if not module.name.endswith("__main__")
        and not module.name.endswith(("sandbox_runner", "queues.shell"))
    ]
    found = [one for name in names for one in patterns_in(list(vars(importlib.import_module(name)).values()))]
    assert len(found) > 100
    for one in found:
        assert isinstance(one.pattern, str)


def test_a_pattern_does_what_a_compiled_one_does() -> None:
    ours, theirs = lazy_pattern(r"(\d+)-(?P<b>\w)", re.ASCII), re.compile(r"(\d+)-(?P<b>\w)", re.ASCII)
    text = "12-a, 3-b; ٣-c"
    assert ours.findall(text) == theirs.findall(text)
    assert ours.sub(r"\2", text) == theirs.sub(r"\2", text)
    assert (ours.pattern, ours.flags, ours.groupindex) == (theirs.pattern, theirs.flags, theirs.groupindex)
    assert ours.fullmatch(text) is None
