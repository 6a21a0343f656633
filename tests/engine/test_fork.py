"""A fork takes answers over without paying for them, and may put a question in other words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonry.core.effects import Ask
from reasonry.engine.engine import Engine
from reasonry.engine.policy import Performers
from reasonry.errors import ConflictError, UsageError
from reasonry.surfaces.web.run_page import run_page

from .playing import CountingModel
from .running import accept, drive, fork, trace_of
from .test_engine import engine, order

pytestmark = pytest.mark.anyio
WIDTH = 2


async def ended_run(engines: Engine, steps: int = 3) -> str:
    run_id = await accept(engines, order(steps=steps, width=WIDTH))
    await drive(engines, run_id, Performers(CountingModel()))
    return run_id


@given(st.text(), st.text(), st.text(), st.text())
def test_a_question_in_other_words_has_exactly_these(system: str, prompt: str, steps: str, text: str) -> None:
    ask = Ask(prompt, system=system, step_by_step=steps)
    assert ask.in_other_words(text).spelled_out().text == text
    assert ask.in_other_words(ask.spelled_out().text).spelled_out().text == ask.spelled_out().text


@given(at=st.integers(0, 6), again=st.integers(0, 6))
async def test_a_fork_books_what_it_asks_itself_alone(at: int, again: int) -> None:
    engines = engine()
    first = await ended_run(engines)
    forked = await fork(engines, first, None, at)
    assert (await engines.result(forked)).usage.calls == 0
    result = await drive(engines, forked, Performers(CountingModel()))
    record = await engines.record(forked)
    page = run_page(record, None)
    assert result.usage.calls == 6 - at == sum(node.cost.calls for node in page.nodes)
    assert (
        (page.reused.calls if page.reused else 0) == at == sum(question.reused for question in page.questions)
    )
    assert (await engines.replay(forked))["replay"]["identical"] is True
    second = await fork(engines, forked, None, again)
    assert (await drive(engines, second, Performers(CountingModel()))).usage.calls == 6 - again


@given(at=st.integers(0, 5))
async def test_a_reworded_question_is_asked_so_shown_so_and_replayed_so(at: int) -> None:
    engines, model = engine(), CountingModel()
    first = await ended_run(engines)
    asked = [event["id"] for event in (await trace_of(engines, first))["events"]][at]
    forked = await fork(engines, first, None, at, {asked: "Something else?"})
    result = await drive(engines, forked, Performers(model))
    assert result.status == "done"
    page = run_page(await engines.record(forked), None)
    question = next(question for question in page.questions if question.reworded)
    assert (question.id, [page.texts[place] for place in question.prompt]) == (asked, ["Something else?"])
    assert [one.id for one in page.questions if one.reworded] == [asked]
    assert (await engines.replay(forked))["replay"]["identical"] is True
    # A fork of the fork keeps the words where it keeps the question.
    again = await fork(engines, forked, None, 6)
    assert (await engines.record(again)).head["reworded"] == {asked: "Something else?"}
    assert "reworded" not in (await engines.record(await fork(engines, forked, None, 0))).head or at < WIDTH


async def test_what_cannot_be_asked_at_that_point_is_refused_and_nothing_is_written() -> None:
    engines = engine()
    first = await ended_run(engines)
    for effect_id, text in (("e9", "x"), ("e1", " "), ("e3", "a\0b"), ("e1", "x")):
        with pytest.raises(ConflictError if text == "x" else UsageError) as refused:
            await fork(engines, first, None, 2, {effect_id: text})
        assert refused.value.details.get("field", "prompt") == "prompt"
    with pytest.raises(ConflictError, match="a number from 0 to 6, not at"):
        await fork(engines, first, None, 7)
    assert len(await engines.store.runs()) == 1
