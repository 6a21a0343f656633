"""The tables of the scoreboard: each recorded file in `scoreboard/` is scored again, without a model."""

from __future__ import annotations

from pathlib import Path

from reasonry.app.composition import read_composition
from reasonry.compare.recorded_table import score_again
from reasonry.compare.standings import Report, Standing, standings
from reasonry.strategies import BASE, STRATEGIES

FILES = Path(__file__).resolve().parents[1] / "scoreboard"
HEADS = ("strategy", "right", "95 %", "calls", "samples", "tokens", "in a sentence")
DOES = {
    "chain_of_thought": "thinking in steps",
    "self_consistency": "voting",
    "best_of_n": "judging",
    "program_of_thought": "writing a program",
}
"""What a strategy does, in a sentence; for others their titles."""


def tables() -> str:
    """Return the tables of all files, by data set and model."""
    reports = [(path, score_again(str(path), STRATEGIES)) for path in sorted(FILES.glob("*.jsonl"))]
    return "\n\n".join(table(path, report) for path, report in reports)


def table(path: Path, report: Report) -> str:
    """Return the section of one file."""
    facts = report.facts
    model = facts["model"].rpartition("#")[2]
    limits = [f"{limit} {name}" for name, limit in facts["budget"].items() if isinstance(limit, int)]
    reply = [f"{facts['max_output_tokens']} output tokens a reply"] if facts["max_output_tokens"] else []
    made = [f"{name} {facts[name]}" for name in ("seed", "level") if facts[name] is not None]
    rows = sorted(standings(report.trials, report.strategies), key=lambda row: row.strategy != BASE)
    base = next((row for row in rows if row.strategy == BASE), None)
    lines = [
        f"### {model}, {facts['dataset']}",
        "",
        f"`scoreboard/{path.name}` · {', '.join([f'{len(report.items)} problems', *made])} · "
        f"at most {', '.join([*limits, *reply])} · reasonry {facts['reasonry']}",
        "",
        f"| {' | '.join(HEADS)} |",
        f"|{'---|' * len(HEADS)}",
        *(line(row, base) for row in rows),
    ]
    return "\n".join(lines)


def line(row: Standing, base: Standing | None) -> str:
    """Return the line of a strategy."""
    cells = (
        f"`{row.strategy}`",
        f"{row.right} of {row.runs}",
        f"{row.low:.0%}–{row.high:.0%}",
        f"{row.calls:.1f}",
        f"{row.samples:.1f}",
        f"{row.tokens:,.0f}",
        sentence(row) if base is not None else "",
    )
    return f"| {' | '.join(cells)} |"


def sentence(row: Standing) -> str:
    """Say in plain words whether a strategy is worth its tokens."""
    if row.gain is None:
        return f"Asking alone solves {row.accuracy:.0%}."
    written = read_composition(row.strategy)
    parts = [written.inside] if written.inside else []
    parts += [f"{value} {'drafts' if name == 'n' else name}" for name, value in written.options.items()]
    does = DOES.get(written.name, STRATEGIES[written.name].title)
    way = f"{does} with {' and '.join(parts)}" if parts else does
    thin = f"; in {row.thin} of {row.runs} votes no two agreed" if row.thin else ""
    points = f"{row.gain.points:+.0f} points" if round(row.gain.points) else "no gain"
    cost = points if row.gain.times is None else f"{points} for {row.gain.times:.1f} times the tokens"
    return f"{way[0].upper()}{way[1:]} {row.gain.verdict}: {cost}{thin}."
