"""Draws the pictures of the README: `chart.svg` from what a measurement printed, and the page of a run in both themes.

    uv run --group bench python bench/voting.py > docs/measured.txt      above it, versions and date
    uv run python docs/pictures.py                                       needs Chromium

The chart has rows only where a peer was measured in the same run.
"""

from __future__ import annotations

import asyncio
import re
import shutil
from pathlib import Path

import reasonry
from reasonry.app.app import App
from reasonry.stores import open_store
from reasonry.strategies import STRATEGIES
from reasonry.surfaces.web.html_page import html_page
from reasonry.surfaces.web.run_page import run_page

DOCS = Path(__file__).parent
ROW = re.compile(r"^(?P<name>\S.*?) {2,}(?P<numbers>[\d.% ]+)$", re.MULTILINE)
ROWS = {
    "LangGraph": "fixed 40, LangGraph Send",
    "DSPy": "fixed 40, DSPy majority",
    "Reasonry": "windows of 5, Beta rule",
}
"""The measured row of each label."""
BARS = 560
STYLE = """text { font: 13px Inter, system-ui, sans-serif; fill: #1f2328; }
.t { font-weight: 600; } .u { font-size: 12px; fill: #59636e; }
.us { fill: #1a7f5a; } .them { fill: #afb8c1; }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3; } .u { fill: #9198a1; } .us { fill: #3fb98a; }
.them { fill: #59636e; } }"""


def draw(measured: str) -> str:
    """Return the picture of what was measured; its first line says with which versions, and when."""
    rows = {found["name"]: found["numbers"].split() for found in ROW.finditer(measured)}
    right = {rows[name][5] for name in ROWS.values()}
    assert len(right) == 1, "the votes are compared at the same accuracy"
    parts = [
        f"<title>Samples of a vote</title>\n<style>\n{STYLE}\n</style>",
        _text(
            "t",
            20,
            26,
            f"Samples per question of a vote on 40 questions, {float(*right):.1%} right in each row",
        ),
        _text("u", 20, 43, "less is better"),
    ]
    for place, (label, name) in enumerate(ROWS.items()):
        value, top = float(rows[name][1]), 56 + 24 * place
        width = BARS * value / max(float(rows[each][1]) for each in ROWS.values())
        kind = "us" if label == "Reasonry" else "them"
        parts += [
            _text("n", 20, top + 13, label),
            f'<rect class="{kind}" x="120" y="{top}" width="{width:.1f}" height="17" rx="2"/>',
            _text("v", 126 + width, top + 13, f"{value:g}"),
        ]
    parts.append(_text("u", 20, 146, measured.partition("\n")[0].removeprefix("# ")))
    head = (
        'xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 156" role="img" aria-label="Samples of a vote"'
    )
    return "\n".join([f"<svg {head}>", *parts, "</svg>", ""])


def _text(kind: str, x: float, y: float, words: str) -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}">{words}</text>'


async def solved_page() -> str:
    """Solve the puzzle of the README, and return its page."""
    store = open_store("memory")
    result = await reasonry.solve(
        "Use 4, 9, 10 and 13 to make 24", strategy="tree_of_thoughts", model="offline", store=store
    )
    async with App(store) as app:
        record = await app.engine.record(result.run_id)
        return html_page(run_page(record, STRATEGIES["tree_of_thoughts"], None))


def photograph(page: str) -> None:
    """Write `page.png` and `page-dark.png`, two pixels for each of theirs."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for theme, name in (("light", "page.png"), ("dark", "page-dark.png")):
            window = browser.new_page(
                viewport={"width": 1100, "height": 640}, device_scale_factor=2, color_scheme=theme
            )
            window.set_content(page)
            window.wait_for_timeout(500)
            window.screenshot(path=str(DOCS / name))
        browser.close()


if __name__ == "__main__":
    (DOCS / "chart.svg").write_text(draw((DOCS / "measured.txt").read_text("utf-8")), "utf-8", newline="\n")
    photograph(asyncio.run(solved_page()))
