"""Plans of calls that refer to one another's results."""

from hypothesis import given
from hypothesis import strategies as st

from reasonry.blocks.evidence import (
    PlannedCall,
    call_arguments,
    evidence_id,
    plan_fault,
    references,
    substitute,
)
from reasonry.blocks.toolcard import ToolCard

CARD = ToolCard("search", "", {"type": "object", "properties": {"q": {"type": "string"}}})


def test_references_are_whole_numbers() -> None:
    assert references("#E1 and #E10, #e2s, E3, #E12345") == ("#E1", "#E10", "#E2")
    assert references({"a": ["#E1", {"b": "x#E3"}], "c": 4}) == ("#E1", "#E3")
    assert [evidence_id(one) for one in ("#E1", "e02", "3")] == ["#E1", "#E2", "#E3"]
    assert {evidence_id(one) for one in ("E", "first", "")} == {None}


@given(
    st.dictionaries(st.integers(1, 30), st.text(max_size=6), max_size=8),
    st.lists(st.integers(1, 30), max_size=8),
)
def test_substitution_is_exact(evidence: dict[int, str], order: list[int]) -> None:
    given_text = "|".join(f"<#E{n}>" for n in order)
    expected = "|".join(f"<{evidence[n]}>" if n in evidence else f"<#E{n}>" for n in order)
    assert substitute(given_text, {f"#E{n}": text for n, text in evidence.items()}) == expected


def test_evidence_is_put_in_once() -> None:
    assert substitute("a #E1", {"#E1": "#E2", "#E2": "no"}) == "a #E2"
    assert substitute(["#E1", 3, {"x": "n=#E1"}], {"#E1": 7}) == [7, 3, {"x": "n=7"}]


def test_a_deeply_nested_input_is_a_text_and_no_crash() -> None:
    deep = '{"q": ' + "[" * 700 + "]" * 700 + "}"
    call = PlannedCall(id="#E1", tool="search", input=deep)
    assert plan_fault([call], [CARD]) is None
    assert call_arguments(CARD, call, {}) == {"q": deep}


def test_an_input_is_the_one_argument_or_an_object() -> None:
    for given_, found in (
        ("cats", "cats"),
        ('{"q": "cats"}', "cats"),
        ('{"cats": 1}', '{"cats": 1}'),
        ({"q": "#E2"}, "x"),
    ):
        call = PlannedCall(id="#E1", tool="search", input=given_)
        assert call_arguments(CARD, call, {"#E2": "x"}) == {"q": found}
