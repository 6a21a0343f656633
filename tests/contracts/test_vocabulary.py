"""Names say what they name: functions are verbs or nouns, and nothing is called `one` that has a name."""

import ast
import re
from collections.abc import Iterator

import pytest

from .sources import SOURCE, files, tree_of

ROOMS = sorted(
    path.name for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
)

NO_NAMES = {
    *("one", "given", "it", "usual", "least", "most", "who", "told", "said", "what", "those", "again"),
    "standing",
}
"""Words that stand for a name; `who` works on a run, but it is `performers`; the `usual` value is a default."""

PARTICIPLE = re.compile(
    r"(?:[a-z]*[^e]ed|written|given|taken|known|told|said|kept|left|made|drawn|shown|broken|forgotten|hidden|paid|"
    r"meant|standing|heed|obey|ring)"
)
"""A function of this name alone says neither what it does nor what it returns: `read_score`, not `scored`."""

OBSERVER_METHODS = {"asked", "stepped", "ended"}
"""What an observer is told, named for what happened; programs implement these."""

PRIVATE_WORDS = re.compile(
    r"\b(?:turnstile|conced\w+|lane|shelf|desk|let an? \w+ pass|is no such thing|come along|comes along|"
    r"to be had|had here|of one's own|one flight|with patience)\b",
    re.IGNORECASE,
)
"""Words of our own, and turns of phrase that a reader has to guess at."""

RECORDED = {"no focused answer was to be had: "}
"""Texts of results that stand in stores of 0.1.0; a replay has to give them to the letter."""


def misnamed(tree: ast.Module) -> Iterator[str]:
    """Yield the names and words of a module that say nothing or that a reader has to guess at."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            # What is read like an attribute may be named like one.
            is_property = any("property" in ast.unparse(each) for each in node.decorator_list)
            if PARTICIPLE.fullmatch(node.name.strip("_")) and not is_property:
                yield from {node.name} - OBSERVER_METHODS
        elif isinstance(node, ast.arg):
            yield from {node.arg} & NO_NAMES
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield from {node.id} & NO_NAMES
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value not in RECORDED:
            yield from (match[0] for match in PRIVATE_WORDS.finditer(node.value))


@pytest.mark.parametrize("room", ROOMS)
def test_functions_and_variables_have_names_and_texts_are_in_plain_technical_english(room: str) -> None:
    found = {f"{path.name}: {word}" for path in files(room) for word in misnamed(tree_of(path))}
    assert not found
