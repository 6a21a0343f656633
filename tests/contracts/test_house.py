"""The house is in order: a strategy stands in one place, and a name means one thing."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from reasonry.strategies import STRATEGIES

from .sources import FILES, SOURCE, docstrings, tree_of

REGISTRY = SOURCE / "strategies" / "__init__.py"

DRIVEN = [name for name, strategy in STRATEGIES.items() if strategy.is_driven]

NAMED_ELSEWHERE = {
    # What writes a draft by default; an option's default says so.
    ("blocks/drafts.py", "chain_of_thought"),
    # The strategy that a program takes by hand by default, and its own machine.
    ("machine.py", "tree_of_thoughts"),
    ("tree_machine.py", "tree_of_thoughts"),
}

EACH_STRATEGY_HAS = {"Options", "State", "state.py"}
"""Names of parts that every strategy has of its own."""

SHOWN_BY_SURFACES = {"coach.py", "runs.py", "sessions.py"}
"""Names of things that commands and routes are about."""


def name_of(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def own_file(strategy: str) -> Path:
    """Return the file of a strategy; of one that has a folder, the file that opens it."""
    alone = SOURCE / "strategies" / f"{strategy}.py"
    folder = alone.with_suffix("") / "__init__.py"
    # Profiles are prompts over one mechanism, and share its file.
    return next(path for path in (alone, folder, alone.with_name("profiles.py")) if path.exists())


@cache
def words(path: Path) -> frozenset[str]:
    """Return the identifiers and the texts of a file, without what documents it."""
    return frozenset(_words(tree_of(path)))


def _words(tree: ast.Module) -> Iterator[str]:
    documenting = docstrings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in documenting:
            yield node.value
        for field in ("id", "attr", "name", "arg", "module"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                yield value


def names(text: str, strategy: str) -> bool:
    """Whether a text names a strategy; a name that is an English word too must be the whole text, or quoted."""
    written = text.casefold().replace("-", "_")
    if strategy not in written:
        return False
    if "_" in strategy:
        return re.search(rf"\b{strategy}\b", written) is not None
    return written == strategy or re.search(rf"[`'\"]{strategy}[`'\"]", written) is not None


@pytest.mark.parametrize("strategy", DRIVEN)
def test_only_its_own_file_and_the_registry_name_a_strategy(strategy: str) -> None:
    own = own_file(strategy)
    at_home = {REGISTRY, own, *(own.parent.rglob("*.py") if own.name == "__init__.py" else ())}
    elsewhere = {
        (name_of(path), strategy)
        for path in FILES
        if path not in at_home and any(names(text, strategy) for text in words(path))
    }
    assert elsewhere == {(path, name) for path, name in NAMED_ELSEWHERE if name == strategy}


def test_every_exception_is_about_a_strategy_there_is() -> None:
    assert {name for _, name in NAMED_ELSEWHERE} <= set(DRIVEN)


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_strategy_cites_its_source_in_its_own_file(name: str) -> None:
    text = ast.get_docstring(tree_of(own_file(name))) or ""
    if STRATEGIES[name].source == "this project":
        assert re.search(r"seed 00\d|the baseline", text, re.IGNORECASE), "its docstring names its design"
        return
    source = re.search(r"arXiv:\d{4}\.\d{4,5}", STRATEGIES[name].source)
    assert source, "the source is a paper or this project"
    assert source[0].casefold() in text.casefold()


def test_no_class_name_stands_twice() -> None:
    places = defaultdict[str, list[str]](list)
    for path in FILES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(name_of(path))
    twice = {name: where for name, where in places.items() if len(where) > 1}
    for name in EACH_STRATEGY_HAS & twice.keys():
        assert all(where.startswith("strategies/") for where in twice.pop(name))
    assert not twice


def test_no_two_files_of_one_name_are_different_things() -> None:
    places = defaultdict[str, set[Path]](set)
    for path in FILES:
        inside = path.relative_to(SOURCE).parts
        # A strategy's parts are named alike; a command's file, or a route's, has the name of what it is about.
        is_part = inside[0] == "strategies" and path.name in EACH_STRATEGY_HAS
        is_about = (
            inside[:2] in (("surfaces", "cli"), ("surfaces", "http")) and path.name in SHOWN_BY_SURFACES
        )
        # The public module of the machine is the door to the one in the core.
        is_door = inside == ("machine.py",)
        if not (is_part or is_about or is_door or path.name.startswith("__")):
            places[path.name].add(path)
    assert not {name: sorted(map(name_of, where)) for name, where in places.items() if len(where) > 1}
