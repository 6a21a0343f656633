"""Plots as SVG text: points with intervals and a front, and bars. Nothing in them runs or is fetched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from math import ceil, floor, log10

from msgspec import Struct

from .. import present

COLOURS = 8
"""How many colours the page has; names beyond that begin anew."""


class Point(Struct, frozen=True):
    """A strategy in the plane: what it costs, how accurate it is, how surely.

    Args:
        any_of: Accuracy if anything found counts.
    """

    label: str
    cost: float
    accuracy: float
    low: float
    high: float
    any_of: float | None = None
    front: bool = False


class Bar(Struct, frozen=True):
    """A length with a name and what stands at its end."""

    label: str
    value: float
    shown: str


def tag(name: str, *children: str, **attributes: str | float) -> str:
    """Return an element; attribute values are escaped, children are markup already.

    Args:
        attributes: `class_` is `class`, and `_` is `-`.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_shown(value))}"' for key, value in attributes.items()
    )
    return f"<{name}{written}>{''.join(children)}</{name}>"


def text(content: str) -> str:
    """Return text as markup that does nothing."""
    return escape(present.inert(content))


def _shown(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")


def label(content: str, x: float, y: float, anchor: str = "start", class_: str = "") -> str:
    """Return a text at a place."""
    return tag("text", text(content), x=x, y=y, text_anchor=anchor, class_=class_)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> str:
    """Return a straight line."""
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def drawing(width: float, height: float, title: str, *parts: str) -> str:
    """Return a whole drawing, which has a name for those who do not see it."""
    name = tag("title", text(title))
    return tag("svg", name, *parts, viewBox=f"0 0 {width:g} {height:g}", role="img", class_="plot")


# -- points

WIDTH, HEIGHT = 680.0, 380.0
LEFT, RIGHT, TOP, BOTTOM = 56.0, 160.0, 16.0, 48.0


def front(points: Sequence[Point], axis: str) -> str:
    """Return accuracy over cost, each point with its interval, those on the front joined.

    Args:
        axis: What the cost is.
    """
    step, most = _scale(max((point.cost for point in points), default=0.0))

    def x(cost: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * cost / most

    def y(share: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share

    parts = [line(LEFT, y(share / 4), WIDTH - RIGHT, y(share / 4), "grid") for share in range(5)]
    parts += [label(f"{share * 25} %", LEFT - 8, y(share / 4) + 4, "end", "tick") for share in range(5)]
    ticks = [step * at for at in range(round(most / step) + 1)]
    parts += [label(f"{tick:g}", x(tick), HEIGHT - BOTTOM + 18, "middle", "tick") for tick in ticks]
    parts.append(label(axis, (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, "middle", "axis"))
    best = sorted((point for point in points if point.front), key=lambda point: point.cost)
    path = " ".join(f"{x(point.cost):.1f},{y(point.accuracy):.1f}" for point in best)
    parts.append(tag("polyline", points=path, class_="front"))
    for at, point in enumerate(points):
        parts += _marks(at, point, x(point.cost), y)
    parts += _legend(points)
    return drawing(WIDTH, HEIGHT, f"Accuracy over {axis}", *parts)


def _marks(at: int, point: Point, x: float, y: Callable[[float], float]) -> list[str]:
    colour = f"c{at % COLOURS}"
    low, high, middle = (y(share) for share in (point.low, point.high, point.accuracy))
    marks = [line(x, low, x, high, f"interval {colour}")]
    if point.any_of is not None and point.any_of != point.accuracy:
        marks.append(tag("circle", cx=x, cy=y(point.any_of), r=5.0, class_=f"hollow {colour}"))
    return [*marks, tag("circle", cx=x, cy=middle, r=6.0, class_=f"dot {colour}")]


def _legend(points: Sequence[Point]) -> list[str]:
    """Return the names in the margin, the most accurate first; beside the points they would lie on others."""
    parts: list[str] = []
    ranked = sorted(enumerate(points), key=lambda one: -one[1].accuracy)
    for row, (at, point) in enumerate(ranked):
        x, y = WIDTH - RIGHT + 20, TOP + 10 + row * 20
        parts.append(tag("circle", cx=x, cy=y - 4, r=5.0, class_=f"dot c{at % COLOURS}"))
        parts.append(label(point.label, x + 11, y, class_="name"))
    return parts


def _scale(most: float) -> tuple[float, float]:
    """Return a round step and the end of an axis that holds a value."""
    if most <= 0:
        return 1.0, 1.0
    rough = most / 4
    power = 10.0 ** floor(log10(rough))
    step = next(size * power for size in (1, 2, 2.5, 5, 10) if size * power >= rough)
    return step, step * max(1, ceil(most / step - 1e-9))


# -- bars

BAR, GAP, NAMES, ENDS = 18.0, 8.0, 140.0, 90.0


def bars(title: str, rows: Sequence[Bar]) -> str:
    """Return lengths side by side, each with its name and value."""
    most = max((row.value for row in rows), default=0.0) or 1.0
    width, height = 520.0, (BAR + GAP) * len(rows) + GAP
    parts: list[str] = []
    for at, row in enumerate(rows):
        y = GAP + at * (BAR + GAP)
        length = max((width - NAMES - ENDS) * row.value / most, 1.0)
        colour = f"fill c{at % COLOURS}"
        parts.append(label(row.label, NAMES - 8, y + 13, "end", "name"))
        parts.append(tag("rect", x=NAMES, y=y, width=length, height=BAR, rx=3.0, class_=colour))
        parts.append(label(row.shown, NAMES + length + 6, y + 13, class_="tick"))
    return drawing(width, height, title, *parts)
