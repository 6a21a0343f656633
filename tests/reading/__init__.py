"""Replies of minds, a line each of the files here, and how their answers are read."""

import json
from pathlib import Path
from typing import Any

from reasonry.blocks.answers import ReasonedAnswer
from reasonry.core.readings import Unreadable
from reasonry.reading.form import read_form
from reasonry.reading.thinking import without_thinking


def lines_of(name: str) -> list[dict[str, Any]]:
    text = (Path(__file__).parent / f"{name}.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def read_answer(*texts: str) -> tuple[ReasonedAnswer, str] | Unreadable:
    return read_form([without_thinking(text) for text in texts], ReasonedAnswer)
