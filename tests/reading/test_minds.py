"""Replies that minds gave in whole runs: each run's answer is what is read, at first sight or asked again for its mark.

A line of `minds.jsonl` is a run: its strategy, problem and options, the replies by stage in the order they came, the
verifier's verdicts, and what has to stand in the answer (nothing: the mind found none). One reply was empty, since all
of it came as reasoning; one came as calls of tools in the form of OpenAI.
"""

from typing import Any

import pytest

from reasonry.core.readings import ALL, Unreadable
from reasonry.reading.thinking import without_thinking

from . import lines_of, read_answer

RUNS = lines_of("minds")


@pytest.mark.parametrize("run", RUNS, ids=[f"{number}-{run['strategy']}" for number, run in enumerate(RUNS)])
def test_a_run_ends_with_the_answer_its_mind_gave(run: dict[str, Any]) -> None:
    (*_, work) = (reply["text"] for reply in run["replies"])
    first = read_answer(work)
    if not isinstance(first, Unreadable):
        assert all(part in first[0].text for part in run["answer"])
    answer = "; ".join(run["answer"]) or "There is none."
    second = read_answer(work, f"<answer>{answer}</answer>")
    assert not isinstance(second, Unreadable), second.reason
    assert second[0].text == answer
    assert second[0].reasoning == without_thinking(work).strip()


def test_an_essay_comes_back_word_for_word() -> None:
    (run,) = (run for run in RUNS if run["answer"] == ["Why Bridges Fail"])
    (reply,) = run["replies"]
    asked = read_answer(reply["text"])
    assert isinstance(asked, Unreadable)
    assert asked.is_unmarked
    found = read_answer(reply["text"], f"<answer>{ALL}</answer>")
    assert not isinstance(found, Unreadable)
    assert found[0].text == reply["text"].strip()
    assert len(found[0].text.split()) == 1_886
