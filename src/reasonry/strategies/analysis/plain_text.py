"""Results and passages as text: what questions show of them.

Rule: what is data stays in the result document; a question shows its meaning, without JSON and without scores.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...core.evidence import evidence_text, passage_place, passages_text
from ...patterns import lazy_pattern
from .questions import texts

_CITED = lazy_pattern(r"\[(\d{1,3})\]")


def found_text(passages: Any) -> str:
    """Return what was found: passages with their numbers, anything else as it is."""
    return passages_text(passages) if isinstance(passages, list) else evidence_text(passages)


def result_text(resource: str, result: Any, *, with_passages: bool = False) -> str:
    """Return the result of a task as questions show it.

    Args:
        with_passages: Show the passages that were found, too; who judges the result needs them.
    """
    if not isinstance(result, Mapping):
        return data_text(result)
    writers = {"knowledge": _knowledge, "logic_kernel": _logic, "py_executor": _program}
    lines = list(writers[resource](result)) if resource in writers else [data_text(result)]
    if with_passages and result.get("passages"):
        lines = ["Passages it was given:", found_text(result["passages"]), "What it says:", *lines]
    return "\n".join(lines)


def _knowledge(result: Mapping[str, Any]) -> Iterator[str]:
    yield f"{result.get('answer', '')}"
    if result.get("confidence") is not None:
        yield f"Confidence: {result['confidence']}"
    passages = result.get("passages")
    cited = {int(digits) for digits in _CITED.findall(str(result.get("answer")))}
    if isinstance(passages, list) and cited:
        shown = (f"[{n}] {passage_place(passage)}" for n, passage in enumerate(passages, 1) if n in cited)
        yield "Sources: " + "; ".join(shown)


def _logic(result: Mapping[str, Any]) -> Iterator[str]:
    yield from texts(tuple(result["steps"]) if isinstance(result.get("steps"), list) else result.get("steps"))
    yield f"Conclusion: {result.get('conclusion', '')}"
    check = result.get("check")
    # A check that came to nothing says nothing of the deduction.
    if isinstance(check, Mapping) and check.get("verdict") == "unknown":
        return
    if result.get("formal_claim"):
        yield f"Formal claim: {data_text(result['formal_claim'])}"
    if check is not None:
        yield f"Check of the claim: {data_text(check)}"


def _program(result: Mapping[str, Any]) -> Iterator[str]:
    yield f"Program:\n{result.get('code', '')}"
    yield f"Output: {data_text(result.get('output'))}"


def data_text(value: Any, indent: str = "") -> str:
    """Return JSON data as lines: `name: value`, and `- item` for the items of a list."""
    if isinstance(value, Mapping) and value:
        return "\n".join(f"{indent}{name}: {_nested_text(item, indent)}" for name, item in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str) and value:
        return "\n".join(f"{indent}- {_nested_text(item, indent).lstrip()}" for item in value)
    return evidence_text(value)


def _nested_text(value: Any, indent: str) -> str:
    if isinstance(value, Mapping | list) and value:
        return "\n" + data_text(value, f"{indent}  ")
    return evidence_text(value)
