"""A stage's fields mean the same however a thinker writes them; what has two meanings is left to be refused."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonry.core.json_schema import faults
from reasonry.guided.fields import find_field, read_data, read_value
from reasonry.strategies import STRATEGIES

FIELDS = [field for strategy in STRATEGIES.values() for stage in strategy.stages for field in stage.fields]
UNIT = {"type": "number", "minimum": 0, "maximum": 1}
HUNDRED = {"type": "number", "minimum": 0, "maximum": 100}
TEXTS = {"type": "array", "items": {"type": "string"}}

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=5
)


@pytest.mark.parametrize(
    ("value", "schema", "meant"),
    [
        ("0.7", UNIT, 0.7),
        (" 0.7 ", UNIT, 0.7),
        ("70%", UNIT, 0.7),
        ("7/10", UNIT, 0.7),
        ("7 out of 10", UNIT, 0.7),
        ({"score": "0.7"}, UNIT, 0.7),
        ("1", UNIT, 1),
        ("85", HUNDRED, 85),
        ("85%", HUNDRED, 85.0),
        ("17/20", HUNDRED, 85.0),
        ("-3", {"type": "integer"}, -3),
        ("yes", {"type": "boolean"}, True),
        ("False", {"type": "boolean"}, False),
        (0, {"type": "boolean"}, False),
        (12, {"type": "string"}, "12"),
        (["a", "b"], {"type": "string"}, "a\nb"),
        ({"tool": "grep"}, {"type": "string"}, '{"tool": "grep"}'),
        ('["a", "b"]', TEXTS, ["a", "b"]),
        ("1. a\n2. b", TEXTS, ["a", "b"]),
        ("only this", TEXTS, ["only this"]),
        ([1, "b"], TEXTS, ["1", "b"]),
        ('{"x": 1}', {"type": "object"}, {"x": 1}),
        ("```json\n{'x': 1}\n```", {"type": "object"}, {"x": 1}),
        ({"a": 1}, {"type": "array", "items": {"type": "object"}}, [{"a": 1}]),
        ("accepted", {"enum": ["ACCEPTED", "REJECTED"]}, "ACCEPTED"),
        ("highly complex", {"enum": ["complex", "highly_complex"]}, "highly_complex"),
    ],
)
def test_a_value_is_read_as_what_it_means(value: Any, schema: dict[str, Any], meant: Any) -> None:
    read = read_value(value, schema)
    assert (read, type(read)) == (meant, type(meant))


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        (7, UNIT),
        ("7", UNIT),
        ("120%", UNIT),
        ("high", UNIT),
        (True, UNIT),
        ("done", {"type": "boolean"}),
        (2, {"type": "boolean"}),
        ("1.5", {"type": "integer"}),
        ("text", {"type": "object"}),
        ([], {"type": "string"}),
        ("maybe", {"enum": ["ACCEPTED", "REJECTED"]}),
        (None, {"type": "string"}),
        ("see {below}", {"type": "object"}),
        ('{"x": "' + "y" * 200_000 + '"}', {"type": "object"}),
        ("{" * 1_000, {"type": "object"}),
        ("[" * 100_000, {"type": "array", "items": {"type": "object"}}),
    ],
)
def test_what_has_no_plain_meaning_stays_to_be_refused(value: Any, schema: dict[str, Any]) -> None:
    assert read_value(value, schema) == value
    assert any(faults(value, schema, "x"))


@given(values, st.sampled_from(FIELDS))
def test_what_a_schema_accepts_is_never_changed_and_reading_twice_changes_nothing(
    value: Any, field: Any
) -> None:
    read = read_value(value, field.schema)
    if not any(faults(value, field.schema, "x")):
        assert read is value
    again = read_value(read, field.schema)
    assert again is read or again == read


def test_fields_are_found_whatever_the_spelling_of_their_names() -> None:
    question = next(field for field in FIELDS if field.name == "subQuestion")
    for name in ("subQuestion", "sub_question", "Sub-Question", "subquestions"):
        assert find_field(name, FIELDS) is question
    assert find_field("question", FIELDS) is None
    assert read_data({"sub_question": "Why?", "more": 1}, [question]) == {"subQuestion": "Why?", "more": 1}
    both = {"sub_question": "a", "subQuestion": "b"}
    assert read_data(both, [question]) == both


def test_a_blank_field_that_may_not_be_blank_counts_as_left_out() -> None:
    fields = STRATEGIES["tree_of_thoughts"].by_name["branch_evaluation"].fields
    for blank in (None, "", "  "):
        assert read_data({"score": blank}, fields) == {}
    assert read_data({"note": None}, fields) == {"note": None}
