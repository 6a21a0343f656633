"""What a stage's fields let pass and what they refuse."""

from typing import Any

import pytest

from reasonry.core.json_schema import faults
from reasonry.core.strategy import Field, Stage
from reasonry.core.type_schema import describe_schema
from reasonry.errors import UsageError
from reasonry.guided.fields import check_fields


def fault_of(value: Any, schema: dict[str, Any]) -> str | None:
    return next(faults(value, schema, "data.x"), None)


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        ("a", {"type": "string"}),
        (3, {"type": "integer"}),
        (3.0, {"type": "integer"}),
        (0.5, {"type": "number", "minimum": 0, "maximum": 1}),
        (True, {"type": "boolean"}),
        (None, {"type": ["string", "null"]}),
        ("b", {"enum": ["a", "b"]}),
        (1, {"const": 1}),
        (["a"], {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2}),
        ({"a": 1}, {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}}),
        ({"b": "else"}, {"type": "object", "properties": {"a": {"type": "integer"}}}),
        (object, {}),
    ],
)
def test_what_fits_passes(value: Any, schema: dict[str, Any]) -> None:
    assert fault_of(value, schema) is None


@pytest.mark.parametrize(
    ("value", "schema", "said"),
    [
        (3, {"type": "string"}, "data.x must be of type string"),
        (True, {"type": "integer"}, "must be of type integer"),
        (True, {"type": "number"}, "must be of type number"),
        (1.5, {"type": "integer"}, "must be of type integer"),
        (float("inf"), {"type": "integer"}, "must be of type integer"),
        (1, {"type": "boolean"}, "must be of type boolean"),
        ("a", {"type": ["integer", "null"]}, "must be of type integer or null"),
        ("c", {"enum": ["a", "b"]}, "must be one of: 'a', 'b'"),
        (True, {"const": 1}, "must be one of: 1"),
        (2, {"type": "number", "maximum": 1}, "must be at most 1"),
        (-1, {"type": "number", "minimum": 0}, "must be at least 0"),
        (0, {"exclusiveMinimum": 0}, "must be over 0"),
        (1, {"exclusiveMaximum": 1}, "must be under 1"),
        ("", {"type": "string", "minLength": 1}, "must have at least 1 characters"),
        ([1, 2], {"maxItems": 1}, "must have at most 1 items"),
        (["a", 1], {"items": {"type": "string"}}, "data.x[1] must be of type string"),
        ({}, {"required": ["a"]}, "data.x.a is missing"),
        ({"a": [{}]}, {"properties": {"a": {"items": {"required": ["b"]}}}}, "data.x.a[0].b is missing"),
    ],
)
def test_what_does_not_fit_is_named(value: Any, schema: dict[str, Any], said: str) -> None:
    found = fault_of(value, schema)
    assert found is not None
    assert said in found


def test_only_required_fields_must_be_there_and_others_are_no_fault() -> None:
    stage: Stage[Any] = Stage(
        "s", fields=(Field("must", {}), Field("may", {"type": "integer"}, required=False))
    )
    check_fields([stage], {"must": None, "other": object()})
    with pytest.raises(UsageError, match=r"Stage s needs data\.must"):
        check_fields([stage], {"may": 1})
    with pytest.raises(UsageError, match=r"Stage s: data\.may must be of type integer") as caught:
        check_fields([stage], {"must": 1, "may": "1"})
    assert caught.value.details["schema"] == {"type": "integer"}


def test_all_that_is_missing_or_wrong_is_in_one_error() -> None:
    stage: Stage[Any] = Stage(
        "s",
        fields=(
            Field("what", {"type": "string", "description": "What to do."}),
            Field("score", {"type": "number", "minimum": 0, "maximum": 1}),
            Field("sure", {"type": "boolean"}, required=False),
        ),
    )
    with pytest.raises(UsageError) as caught:
        check_fields([stage], {"sure": "perhaps"})
    assert caught.value.message == (
        "Stage s needs data.what (text): What to do; Stage s needs data.score (number, 0 to 1); "
        "Stage s: data.sure must be of type boolean"
    )
    assert caught.value.details["fields"] == ["data.what", "data.score", "data.sure"]
    assert caught.value.details["field"] == "data.what"


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({}, "any value"),
        ({"type": "string", "minLength": 1}, "text"),
        ({"type": ["string", "null"]}, "text or null"),
        ({"type": "number", "minimum": 0, "maximum": 1}, "number, 0 to 1"),
        ({"type": "integer", "exclusiveMinimum": 0}, "whole number, over 0"),
        ({"type": "boolean"}, "true or false"),
        ({"enum": ["ACCEPTED", "REJECTED"]}, "ACCEPTED or REJECTED"),
        ({"const": 1}, "1"),
        ({"type": "array", "items": {"type": "string"}}, "list of text"),
        ({"type": "array", "items": {}}, "list"),
        (
            {"type": "array", "items": {"type": "object", "required": ["description", "status"]}},
            "list of object with description, status",
        ),
    ],
)
def test_a_schema_is_told_in_a_few_words(schema: dict[str, Any], words: str) -> None:
    assert describe_schema(schema) == words
