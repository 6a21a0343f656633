"""`reasonry runs diff`: where two runs part, and what came of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ...app.wiring import App
from ...core.text import clip
from ...engine.run_diff import diff_runs
from ...ids import shorten_ids
from .output import print_line, print_lines
from .settings import Common
from .tables import Column, print_table

_AROUND = 60
"""How many characters that two texts share are shown before their first difference."""
_SHOWN = 300
_WHATS: Mapping[str, str] = {
    "question": "they are asked something else",
    "outcome": "the answers differ",
    "only_a": "only A asks this",
    "only_b": "only B asks this",
    "strategy": "their strategies differ, so their paths are not compared",
    "end": "all that was asked and answered is the same; the ends differ",
}


def diff(a: str, b: str, /, *, common: Common = Common()) -> int:
    """Say where two runs part: the first difference, answers, spend, options and limits.

    Parameters
    ----------
    a
        A run, as `runs list` shows it, how its id begins, or `last`.
    b
        The other run.
    """

    async def work(app: App) -> tuple[dict[str, Any], Mapping[str, str]]:
        ids = [await app.run_id(a), await app.run_id(b)]
        document = diff_runs(*[await app.engine.record(run_id) for run_id in ids])
        return document, await shorten_ids(ids, app.store.run_ids)

    document, short = common.do(work)
    return common.show(document, lambda: _show(document, short))


def _show(document: Mapping[str, Any], short: Mapping[str, str]) -> None:
    for side, run in document["runs"].items():
        print_lines([f"{side.upper()}  {short[run['run_id']]}  {_end(run)}"])
        print_lines([f"   {warning}" for warning in run["warnings"]])
    if document["fork"]:
        fork, of = document["fork"], document["fork"]["of"]
        at = "" if fork["at"] is None else f" after {_count(fork['at'], 'answer')}"
        print_line(f"{'B' if of == 'a' else 'A'} is a fork of {of.upper()}{at}.")
    if not document["problem"]["same"]:
        print_line("The problems differ:")
        _show_sides(document["problem"])
    print_line()
    _show_parting(document)
    print_line()
    if document["answer"]["same"]:
        print_lines([f"Both answer: {_text(document['answer']['a'])}"])
    else:
        print_line("Answers:")
        _show_sides(document["answer"])
    print_line()
    _show_table("SPEND", document["spend"])
    if document["terms"]:
        print_line()
        _show_table("OTHERWISE", document["terms"])


def _show_parting(document: Mapping[str, Any]) -> None:
    parting, asked, alike = document["parting"], document["asked"], document["asked"]["alike"]
    if parting is None:
        counts = _count(alike, "question and call", "questions and calls")
        print_lines([f"They go the same way to the same end: {counts}, with the same answers."])
        return
    if parting["what"] != "strategy":
        counts = f"A has {_count(asked['a'], 'question and call', 'questions and calls')}, B {asked['b']}"
        print_lines([f"{counts}; {f'the first {alike} are' if alike else 'none is'} alike."])
    at = (
        ""
        if parting["id"] is None
        else f" at {parting['id']}" + (f", {parting['stage']}" if parting["stage"] else "")
    )
    print_lines([f"They part{at}: {_WHATS[parting['what']]}."])
    _show_sides(parting)


def _show_sides(sides: Mapping[str, Any]) -> None:
    texts = [_text(sides[side]) for side in ("a", "b")]
    for side, text in zip("AB", _from_difference(*texts), strict=True):
        print_lines([f"  {side}: {text}"])


def _from_difference(a: str, b: str) -> list[str]:
    """Return two texts, each from a little before the first difference."""
    same = next(
        (at for at, (mine, other) in enumerate(zip(a, b, strict=False)) if mine != other), min(len(a), len(b))
    )
    start = max(0, same - _AROUND)
    return [("…" if start else "") + clip(text[start:], _SHOWN) for text in (a, b)]


def _show_table(heading: str, rows: list[Mapping[str, Any]]) -> None:
    sides = (Column(side.upper(), lambda row, side=side: _value(row[side]), narrowest=16) for side in "ab")
    print_table((Column(heading, "name"), *sides), rows)


def _value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.4f}".rstrip("0").rstrip(".")
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else _text(value)


def _count(number: int, word: str, words: str = "") -> str:
    return f"{number} {word if number == 1 else words or f'{word}s'}"


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, dict) and value.get("type") == "verified":
        value = f"the verifier says: {value.get('verdict')}, {value.get('detail') or 'no reason given'}"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return " ".join(text.split())


def _end(run: Mapping[str, Any]) -> str:
    word = run["outcome"] or run["status"]
    reason = f" ({run['reason']})" if run["reason"] not in (word, "success", "") else ""
    return f"{run['strategy']}, {run['model']}: {word}{reason}"
