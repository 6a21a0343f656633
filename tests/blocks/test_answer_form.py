"""Answers in the form that a caller named."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, ValidationError

from reasonry.app.app import App
from reasonry.app.participants import Participants
from reasonry.core.json_schema import faults, schema_fault
from reasonry.engine.ports import Question
from reasonry.errors import UsageError

from ..engine.playing import LOOP, STRATEGIES, CountingModel
from ..engine.running import order_and_solve, request_of, trace_of

KINDS = ("string", "number", "integer", "boolean", "array", "object", "null")
NAMES = st.sampled_from(["a", "b", "c"])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.5, 2.5])
    | st.sampled_from(["", "x", "yy"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)


def _objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    keywords = {
        "type": st.sampled_from(KINDS)
        | st.lists(st.sampled_from(KINDS), min_size=1, max_size=2, unique=True),
        "enum": st.lists(VALUES, min_size=1, max_size=3),
        "minimum": st.integers(-2, 2),
        "maxLength": st.integers(0, 2),
        "minItems": st.integers(0, 2),
        "required": st.lists(NAMES, max_size=2, unique=True),
        "properties": st.dictionaries(NAMES, inner, max_size=2),
        "additionalProperties": st.booleans() | inner,
        "items": inner,
        "prefixItems": st.lists(inner, min_size=1, max_size=2),
        "anyOf": st.lists(inner, min_size=1, max_size=2),
        "allOf": st.lists(inner, min_size=1, max_size=2),
        "$ref": st.sampled_from(["#/$defs/a", "#/$defs/b"]),
    }
    return st.fixed_dictionaries({}, optional=keywords)


PARTS = st.recursive(
    st.just({}) | st.sampled_from([{"type": kind} for kind in KINDS]), _objects, max_leaves=5
)
FORMS = st.builds(
    lambda form, a: {**form, "$defs": {"a": a, "b": {"$ref": "#/$defs/a"}}},
    _objects(PARTS),
    st.sampled_from([{"type": "string"}, {"type": "object", "required": ["a"]}]),
)


@settings(max_examples=80)
@given(FORMS, VALUES)
def test_a_value_fits_a_form_where_the_standard_s_validator_says_so(form: dict[str, Any], value: Any) -> None:
    assert schema_fault(form) is None
    try:
        Draft202012Validator(form).validate(value)
        fits = True
    except ValidationError:
        fits = False
    assert (next(faults(value, form, "the answer"), None) is None) == fits


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
@pytest.mark.parametrize("kind", ["string", "integer"])
def test_a_form_reached_in_many_ways_checks_a_value_once(keyword: str, kind: str) -> None:
    reads = list[str]()

    class Leaf(dict[str, Any]):
        def get(self, key: str, default: Any = None) -> Any:
            reads.append(key)
            return super().get(key, default)

    links = {f"d{place}": {keyword: [{"$ref": f"#/$defs/d{place + 1}"}] * 2} for place in range(12)}
    form = {"$ref": "#/$defs/d0", "$defs": {**links, "d12": Leaf(type=kind)}}
    assert any(faults("Oslo", form, "the answer")) == (kind != "string")
    assert reads.count("type") <= 2


@pytest.mark.parametrize(
    "form",
    [
        [],
        {"type": "text"},
        {"type": [1]},
        {"required": "a"},
        {"properties": {"a": 1}},
        {"enum": 3},
        {"minLength": "2"},
        {"$ref": "#/$defs/gone"},
        {"$ref": "https://example.org/schema"},
        {"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        {"description": "x" * 60_000},
    ],
)
def test_a_form_that_cannot_be_kept_is_refused_before_anything_is_asked(form: Any) -> None:
    assert schema_fault(form)


CAPITAL = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "letters": {"type": "integer"}},
    "required": ["city", "letters"],
    "additionalProperties": False,
}


def answers(*replies: str) -> CountingModel:
    """Answer `Oslo`, and a question for the form with these replies, one after the other."""
    left = list(replies)

    def reply(question: Question) -> str:
        return left.pop(0) if question.ask.facts.get("kind") == "answer_form" else "Oslo"

    return CountingModel(reply=reply)


@pytest.mark.anyio
async def test_the_last_stage_asks_for_the_form_until_a_reply_fits() -> None:
    good = json.dumps({"city": "Oslo", "letters": 4})
    model = answers("Oslo", '{"city": "Oslo", "letters": "four"}', f"Here:\n```json\n{good}\n```")
    async with App("memory", environ={}, strategies=STRATEGIES) as app:
        result = await order_and_solve(app, "Where?", LOOP, options={"steps": 2}, model=model, form=CAPITAL)
        assert (result.status, json.loads(result.answer or "")) == ("done", json.loads(good))
        trace = await trace_of(app.engine, result.run_id)
        *_, last = trace["questions"]
        assert "The answer.letters must be of type integer." in last["prompt"]
        assert (await app.engine.replay(result.run_id))["replay"]["identical"]
        with pytest.raises(UsageError, match="cannot be put into this form"):
            app.order(request_of("Where?", LOOP, model=model, form={"type": "city"}))


@pytest.mark.anyio
async def test_an_answer_that_fits_as_it_stands_is_not_asked_for_again_and_one_that_never_fits_fails_the_run() -> (
    None
):
    fitting = CountingModel(reply=lambda question: '{"city": "Oslo", "letters": 4}')
    never, same = answers("Oslo", "Oslo!", "It is Oslo."), answers(*["Oslo"] * 3)
    async with App("memory", environ={}, strategies=STRATEGIES) as app:
        for model, status, calls in ((fitting, "done", 1), (never, "failed", 4), (same, "failed", 3)):
            participants = Participants(model=model)
            result = await order_and_solve(
                app, "Where?", LOOP, options={"steps": 1}, participants=participants, form=CAPITAL
            )
            assert (result.status, model.calls) == (status, calls)
        assert (result.termination.code, result.best_answer) == ("output_invalid", "Oslo")
