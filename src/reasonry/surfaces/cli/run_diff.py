"""`reasonry runs diff`: where two runs part, and what came of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import takewhile
from typing import Any

from ...app.wiring import App
from ...core.text import clip
from ...engine.run_diff import diff_runs
from ...ids import shorten_ids
from .. import present
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
        The id of a run, the start of it, or `last`.
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
        at = "" if fork["at"] is None else f" after {present.count_of(fork['at'], 'answer')}"
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
    _show_table("USAGE", document["spend"])
    if document["terms"]:
        _show_table("SETTING", document["terms"])


def _show_parting(document: Mapping[str, Any]) -> None:
    parting, asked, alike = document["parting"], document["asked"], document["asked"]["alike"]
    if parting is None:
        requests = present.count_of(alike, "request")
        print_line(f"They go the same way to the same end: {requests}, with the same answers.")
        return
    if parting["what"] != "strategy":
        requests = f"A made {present.count_of(asked['a'], 'request')}, B {asked['b']}"
        print_line(f"{requests}; {f'the first {alike} are' if alike else 'none is'} alike.")
    at = ", ".join(filter(None, (parting["id"], parting["stage"])))
    print_line(f"They part{f' at {at}' if at else ''}: {_WHATS[parting['what']]}.")
    _show_sides(parting)


def _show_sides(sides: Mapping[str, Any]) -> None:
    texts = [_text(sides[side]) for side in ("a", "b")]
    print_lines(f"  {side}: {text}" for side, text in zip("AB", _from_difference(*texts), strict=True))


def _from_difference(a: str, b: str) -> list[str]:
    """Return two texts, each from a little before the first difference."""
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))
    start = max(0, same - _AROUND)
    return [("…" if start else "") + clip(text[start:], _SHOWN) for text in (a, b)]


def _show_table(heading: str, rows: list[Mapping[str, Any]]) -> None:
    print_line()
    sides = (Column(side.upper(), lambda row, side=side: _value(row[side]), narrowest=16) for side in "ab")
    print_table((Column(heading, "name"), *sides), rows)


def _value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.4f}".rstrip("0").rstrip(".")
    return f"{value:,}" if type(value) is int else _text(value)


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
