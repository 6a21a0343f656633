"""Plots as SVG text: points with intervals and a front. Nothing in them runs or is fetched."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from math import ceil, floor, log10
from typing import Any

from ..core.text import inert

COLOURS = 8
"""How many colours the page has; names beyond that start over."""


def tag(name: str, *children: str, **attributes: str | float) -> str:
    """Return an element; attribute values are escaped, children are markup already.

    Args:
        attributes: `class_` is `class`, and `_` is `-`.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_attribute_text(value))}"'
        for key, value in attributes.items()
    )
    return f"<{name}{written}>{''.join(children)}</{name}>"


def text(content: str) -> str:
    """Return text as markup that does nothing."""
    return escape(inert(content.replace("\t", " ")))


def _attribute_text(value: str | float) -> str:
    return inert(value) if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")


def label(content: str, x: float, y: float, anchor: str = "start", class_: str = "") -> str:
    """Return a text at a place."""
    return tag("text", text(content), x=x, y=y, text_anchor=anchor, class_=class_)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> str:
    """Return a straight line."""
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


# -- points

WIDTH, HEIGHT = 680.0, 380.0
LEFT, RIGHT, TOP, BOTTOM = 56.0, 160.0, 16.0, 48.0


def front(rows: Sequence[Mapping[str, Any]], cost: str, axis: str) -> str:
    """Return accuracy over cost, each strategy with its interval, those on the front joined.

    Args:
        rows: Standings, as a comparison's document has them.
        cost: The column of the cost; `front_by_…` says who is on its front.
        axis: What the cost is called.
    """
    step, maximum = _scale(max((row[cost] for row in rows), default=0.0))

    def x(value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * value / maximum

    def y(share: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share

    parts = [line(LEFT, y(share / 4), WIDTH - RIGHT, y(share / 4), "grid") for share in range(5)]
    parts += [label(f"{share * 25} %", LEFT - 8, y(share / 4) + 4, "end", "tick") for share in range(5)]
    ticks = [step * at for at in range(round(maximum / step) + 1)]
    parts += [label(f"{tick:g}", x(tick), HEIGHT - BOTTOM + 18, "middle", "tick") for tick in ticks]
    parts.append(label(axis, (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, "middle", "axis"))
    best = sorted((row for row in rows if row[f"front_by_{cost}"]), key=lambda row: row[cost])
    path = " ".join(f"{x(row[cost]):.1f},{y(row['accuracy']):.1f}" for row in best)
    parts.append(tag("polyline", points=path, class_="front"))
    for at, row in enumerate(rows):
        parts += _marks(at, row, x(row[cost]), y)
    parts += _legend(rows)
    title = tag("title", text(f"Accuracy over {axis}"))
    return tag("svg", title, *parts, viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}", role="img", class_="plot")


def _marks(at: int, row: Mapping[str, Any], x: float, y: Callable[[float], float]) -> list[str]:
    colour = f"c{at % COLOURS}"
    low, high, middle = (y(row[share]) for share in ("low", "high", "accuracy"))
    marks = [line(x, low, x, high, f"interval {colour}")]
    if row["any_accuracy"] not in (None, row["accuracy"]):
        marks.append(tag("circle", cx=x, cy=y(row["any_accuracy"]), r=5.0, class_=f"hollow {colour}"))
    return [*marks, tag("circle", cx=x, cy=middle, r=6.0, class_=f"dot {colour}")]


def _legend(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names in the margin, the most accurate first; beside the points they would lie on others."""
    parts: list[str] = []
    ranked = sorted(enumerate(rows), key=lambda numbered: -numbered[1]["accuracy"])
    for place, (at, row) in enumerate(ranked):
        x, y = WIDTH - RIGHT + 20, TOP + 10 + place * 20
        parts.append(tag("circle", cx=x, cy=y - 4, r=5.0, class_=f"dot c{at % COLOURS}"))
        parts.append(label(row["strategy"], x + 11, y, class_="name"))
    return parts


def _scale(maximum: float) -> tuple[float, float]:
    """Return a round step and the end of an axis that holds a value."""
    if maximum <= 0:
        return 1.0, 1.0
    rough = maximum / 4
    power = 10.0 ** floor(log10(rough))
    step = next(size * power for size in (1, 2, 2.5, 5, 10) if size * power >= rough)
    return step, step * max(1, ceil(maximum / step - 1e-9))
