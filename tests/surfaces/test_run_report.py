"""What a person sees of a run: in the terminal, in Markdown and in HTML."""

import io
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonry.core.bodies import Thought
from reasonry.surfaces.cli.draw import print_blocks
from reasonry.surfaces.cli.output import wrap_lines
from reasonry.surfaces.run_report import (
    Block,
    Bullets,
    Heading,
    Prose,
    markdown_page,
    outline,
    path_text,
    thought_title,
)
from tests.in_process import Screen

from .test_cli import Shell
from .web.making import page_in

HOSTILE = "<script>alert(1)</script> [x](http://evil) \x1b[31mred"

PROBLEM = "Is Python or JavaScript better for building a web scraper?"


def text_of(blocks: list[Block]) -> str:
    """Return blocks as they are printed where nobody looks on."""
    printed = io.StringIO()
    print_blocks(blocks, printed)
    return printed.getvalue()


def _plan(*queries: str) -> dict[str, Any]:
    return {"tasks": [{"resource_name": "knowledge", "task_query": query} for query in queries]}


SCORES = [
    {"plan": name, "reason": "so", "overall_score": score}
    for name, score in {"A": 78, "B": 85, "C": 72}.items()
]
TASK = ("task_execution", {"answer": f"Scrapy. {HOSTILE}", "confidence": 0.9})
SCRIPT: list[tuple[str, Any]] = [
    (
        "complexity_analysis",
        {"complexity_level": "straightforward", "dimensions": ["libraries", "speed"]},
    ),
    ("plan_generation", _plan("a", "b")),
    ("plan_generation", _plan("Python web scraping", "JavaScript web scraping")),
    ("plan_generation", _plan("c", "d")),
    ("plan_evaluation", {"evaluations": SCORES}),
    TASK,
    ("quality_evaluation", {"quality": "ACCEPTED", "reason": "Complete."}),
    TASK,
    ("quality_evaluation", {"quality": "REJECTED", "reason": "Nothing on Puppeteer."}),
    ("iteration_decision", {"continue_iterations": False, "quality_summary": "Good coverage"}),
    (
        "synthesis",
        {
            "answer": "Both can do it.",
            "key_findings": ["Python: Scrapy"],
            "final_answer": "Python, unless the rest is JavaScript.",
            "title": "Python or JavaScript",
            "headline": "Python is the safer choice",
        },
    ),
    ("focused_answer", {"value": "Python"}),
]


TOLD = [
    "Complexity: straightforward (libraries; speed)",
    "Plan B · 85/100 · selected",
    "Task 1 · knowledge · ACCEPTED · Python web scraping",
    "Task 2 · knowledge · REJECTED · JavaScript web scraping: Nothing on Puppeteer.",
    "Decision: stop. Good coverage.",
    "Python is the safer choice",
    "- Python: Scrapy",
    "Python, unless the rest is JavaScript.",
]


def test_an_analysis_is_told_in_the_terminal_and_in_both_reports(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    options = ["--strategy", "analysis", "--option", "focused_answer_type=choice: Python | JavaScript"]
    model = shell.script(*({"stage": stage, "reply": reply} for stage, reply in SCRIPT))
    solved = shell.run("solve", PROBLEM, *options, "--model", model, "--report", "run.html")
    assert solved.stdout == "Python\n", "a pipeline gets the value alone"
    assert "Thought 8 · plan_evaluation: Selected plan B: 85/100" in solved.stderr
    shown = shell.run("runs", "show", "last", "--report", "run.md").stdout
    for printed in (solved.stderr, shown):
        told = printed.partition("\nIteration 1\n")[2]
        places = [told.index(line) for line in TOLD]
        assert places == sorted(places)
    assert shown.endswith("\nAnswer\n  Python\n")
    assert "\x1b" not in shown

    page = (tmp_path / "run.html").read_text("utf-8")
    assert "Nothing on Puppeteer." in page
    assert "<script>alert" not in page
    assert page_in(page)["answer"] == "Python"
    text = (tmp_path / "run.md").read_text("utf-8")
    for part in ("## Answer", "## Path", "### Thought 1 ", "- Plan B · 85/100 · selected · so", "\\<script>"):
        assert part in text
    assert "<script>" not in text.replace("\\<script>", "")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("run.pdf", "must end in .md or .html"),
        ("no/such/folder/run.md", "cannot be written"),
        ("run", "must end"),
    ],
)
def test_a_report_that_cannot_be_written_is_refused_before_anything_is_asked(
    tmp_path: Path, name: str, reason: str
) -> None:
    shell = Shell(tmp_path)
    refused = shell.run("solve", "Use 1 and 2 to make 3", "--model", "offline", "--report", name)
    assert (refused.returncode, reason in refused.stderr) == (2, True)
    assert shell.json("runs", "list")["runs"] == []


# -- drawing


def test_a_path_says_how_often_a_stage_repeats() -> None:
    edges = [("a", "b"), ("b", "b"), ("b", "b"), ("b", "c")]
    assert path_text(edges, "c") == "a → b ×3 → c"
    assert path_text([], "a") == "a"


@pytest.mark.parametrize(
    ("thought", "title"),
    [
        (Thought("x", "think"), "Thought 3 · think"),
        (Thought("x", "think", "b1", score=0.5), "Thought 3 · think · b1 · score 0.50"),
        (Thought("x", "", score=85), "Thought 3 · score 85"),
    ],
)
def test_a_thought_is_called_by_its_number_stage_line_and_score(thought: Thought, title: str) -> None:
    assert thought_title(3, thought) == title


@given(st.text(), st.text())
def test_no_text_leaves_its_place_in_a_report(first: str, second: str) -> None:
    blocks = [Heading(first), Prose(second), Bullets((first, second))]
    items = [line for line in markdown_page(blocks).splitlines() if line.startswith("-")]
    assert len(items) == 2
    assert text_of(blocks)


@given(st.lists(st.text("ab -\n", max_size=300)))
def test_lines_of_a_terminal_break_between_words_and_lose_nothing(lines: list[str]) -> None:
    told = list(wrap_lines(lines, Screen()))
    assert max(map(len, told), default=0) <= shutil.get_terminal_size().columns
    assert "".join("".join(told).split()) == "".join("".join(lines).split())
    assert list(wrap_lines(lines, io.StringIO())) == [part for line in lines for part in line.split("\n")]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
KEYS = ("plan_text", "iterations", "tasks", "synthesis", "title", "headline", "final_answer", "image_caption")


@given(st.dictionaries(st.sampled_from(KEYS), json_values))
def test_a_document_of_any_shape_has_an_outline(document: dict[str, Any]) -> None:
    blocks = outline(document)
    text_of(blocks)
    assert markdown_page(blocks).endswith("\n")


def test_verdicts_on_claims_show_their_quotes_and_the_rate() -> None:
    claims = [{"verdict": "refuted", "quote": "takes 20 s"}, {"verdict": "confirmed", "quote": ""}]
    blocks = outline({"claims": claims, "refutation_rate": 0.5})
    assert blocks == [Heading("1 of 2 claims refuted"), Bullets(("refuted: “takes 20 s”",))]
