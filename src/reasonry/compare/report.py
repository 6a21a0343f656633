"""A comparison as one page of HTML: everything is in it, nothing runs, nothing is fetched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import convert

from ..core.text import clip, first_words
from .plots import COLOURS, front, tag, text
from .standings import Standing, Trial, describe_ties

MAX_ROWS = 5_000
"""Problems listed one by one; the JSON document has them all."""

STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5d6878; --line: #d9dee6; --page: #fff; --card: #f6f8fb;
  --c0: #2563a8; --c1: #c2571a; --c2: #2f7d4f; --c3: #8a3fa0; --c4: #a8892a; --c5: #b3364c; --c6: #2b8a94;
  --c7: #6b6f76 }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e9f0; --soft: #9aa6b6; --line: #333c49; --page: #12161c;
  --card: #1a2029; --c0: #6aa5e6; --c1: #ec9056; --c2: #6cc28e; --c3: #c98adb; --c4: #d9bd5e; --c5: #ef8195;
  --c6: #6bc6d0; --c7: #aeb4bd } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); margin: 2rem auto;
  padding: 0 1rem; max-width: 72rem }
h1 { font-size: 1.5rem; margin-bottom: .2rem } h2 { font-size: 1.1rem; margin-top: 2.2rem }
.soft { color: var(--soft) } .wide { overflow-x: auto }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: .3rem .7rem; border-bottom: 1px solid var(--line); text-align: right; vertical-align: top }
th:first-child, td:first-child, td.left, th.left { text-align: left }
td.cut { max-width: 26rem; overflow-wrap: anywhere }
.on { font-weight: 600 } .right { color: var(--c2) } .wrong { color: var(--c5) }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(24rem, 1fr)); gap: 1rem }
figure { margin: 0; background: var(--card); border-radius: 8px; padding: .8rem } figcaption { font-weight: 600 }
svg.plot { width: 100%; height: auto; font-size: 12px; fill: var(--ink) }
svg .grid { stroke: var(--line) } svg .tick, svg .axis { fill: var(--soft) }
svg .front { fill: none; stroke: var(--soft); stroke-dasharray: 5 4; stroke-width: 1.5 }
svg .interval { stroke-width: 2; opacity: .55 } svg .hollow { stroke-width: 2 }
"""

NOTES = (
    "Accuracy is the part of the problems whose answer was right, with its 95 % interval (Wilson); a run without an "
    "answer, and an answer that could not be judged, count as not right. “Any” also counts the problems for which "
    "something else that was found was right: a candidate of a search, an answer that was voted on. The front holds "
    "the strategies that were right at least once and that no other one beats in both accuracy and cost. Calls, "
    "rounds, tokens, dollars and seconds are means per run; rounds are the model calls that had to wait for one "
    "another."
)


def page(document: Mapping[str, Any]) -> str:
    """Return the report of a comparison's document."""
    rows = document["strategies"]
    colours = "".join(
        f"svg .c{at} {{ fill: var(--c{at}); stroke: var(--c{at}) }} svg .fill.c{at} {{ stroke: none }} "
        for at in range(COLOURS)
    )
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>Comparison: {text(document['dataset'])}</title>"
        f"<style>{STYLE}{colours}svg .hollow {{ fill: none }}</style>"
    )
    body = [
        tag("h1", "Strategies compared"),
        _facts(document),
        tag("div", _table(rows), class_="wide"),
        *[tag("p", text(f"{sentence}.")) for sentence in describe_ties(convert(rows, list[Standing]))],
        tag("p", NOTES, class_="soft"),
        tag("h2", "What accuracy costs"),
        tag("div", *_fronts(rows), class_="plots"),
        tag("h2", "Problem by problem"),
        _problems(document["trials"], [row["strategy"] for row in rows]),
    ]
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>{"".join(body)}</body></html>\n'


def _facts(document: Mapping[str, Any]) -> str:
    runs = document["runs"]
    facts = [
        f"{document['problems']} problems of {document['dataset']}",
        f"model {document['model']}",
        f"judge {document['judge']}",
        *([f"judge model {document['judge_model']}"] if document["judge_model"] else []),
        *([f"verifier {document['verifier']}"] if document["verifier"] else []),
        f"{runs['there']} of {runs['wanted']} runs",
        f"{document['at']}, reasonry {document['reasonry']}",
    ]
    return tag("p", text(" · ".join(facts)), class_="soft")


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    figures = ("strategy", "right", "accuracy", "95 % interval", "any")
    heads = (*figures, "calls", "rounds", "tokens", "$", "seconds", "front")
    return tag("table", tag("tr", *(tag("th", head) for head in heads)), *map(_row, rows))


def _row(row: Mapping[str, Any]) -> str:
    by = [name for name, on in (("$", row["front_by_usd"]), ("calls", row["front_by_calls"])) if on]
    cells = (
        row["strategy"],
        f"{row['right']} of {row['runs']}" + (f" ({row['unjudged']} not judged)" if row["unjudged"] else ""),
        f"{row['accuracy']:.1%}",
        f"{row['low']:.1%} – {row['high']:.1%}",
        "–" if row["any_accuracy"] is None else f"{row['any_accuracy']:.1%}",
        f"{row['calls']:.1f}",
        f"{row['rounds']:.1f}",
        f"{row['tokens']:,.0f}",
        "unknown" if row["usd"] is None else f"{row['usd']:.4f}",
        f"{row['seconds']:.2f}",
        ", ".join(by),
    )
    return tag("tr", *(tag("td", text(cell)) for cell in cells), class_="on" if by else "")


def _fronts(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    axes = {"calls": "calls a run"}
    if rows and all(row["front_by_usd"] is not None for row in rows):
        axes = {"usd": "US dollars a run", **axes}
    return [
        tag("figure", tag("figcaption", text(f"Accuracy over {axis}")), front(rows, cost, axis))
        for cost, axis in axes.items()
    ]


def _problems(trials: Sequence[Mapping[str, Any]], strategies: Sequence[str]) -> str:
    by_item: dict[str, dict[str, Mapping[str, Any]]] = {}
    for trial in trials:
        by_item.setdefault(trial["item"], {})[trial["strategy"]] = trial
    head = tag("tr", tag("th", "problem"), *(tag("th", text(name), class_="left") for name in strategies))
    lines = [
        tag(
            "tr",
            tag("td", text(_problem(item, found)), class_="cut"),
            *(_trial(found.get(name)) for name in strategies),
        )
        for item, found in list(by_item.items())[:MAX_ROWS]
    ]
    left = len(by_item) - len(lines)
    more = tag("p", f"{left:,} more are in the JSON document.", class_="soft") if left > 0 else ""
    return tag("div", tag("table", head, *lines), class_="wide") + more


def _problem(item: str, found: Mapping[str, Mapping[str, Any]]) -> str:
    problem = next(iter(found.values()))["problem"]
    return first_words(f"{item}: {problem}", 120)


def _trial(trial: Mapping[str, Any] | None) -> str:
    if trial is None:
        return tag("td", "", class_="left")
    mark, class_ = {True: ("✓", "right"), False: ("✗", "wrong"), None: ("?", "soft")}[trial["right"]]
    found = " (found, not given)" if trial["any_right"] and not trial["right"] else ""
    why = f"no answer: {convert(trial, Trial).why_no_answer}"
    shown = clip(trial["answer"] if trial["answer"] is not None else why, 120)
    title = (
        f"run {trial['run_id']}: {trial['calls']} calls, {trial['rounds']} rounds, {trial['seconds']:.2f} s"
    )
    return tag(
        "td", tag("span", mark, class_=class_), " " + text(shown + found), class_="left cut", title=title
    )
