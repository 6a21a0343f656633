"""Tool cards: how tools are shown, and how calls are read."""

from reasonry.blocks.toolcard import (
    ToolCard,
    arguments_for,
    card_named,
    cards_text,
    convert_types,
    tools_data,
)
from reasonry.core.readings import Unreadable

SEARCH = ToolCard(
    "search",
    "Finds  pages\nthat hold the words.",
    {
        "type": "object",
        "properties": {
            "words": {"type": "string", "description": "What to look for."},
            "limit": {"type": "integer", "default": 5},
            "sort": {"enum": ["date", "rank"]},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["words"],
    },
)
NOW = ToolCard("now", "The time.", {"type": "object", "properties": {}})
PAIR = ToolCard("pair", "", {"properties": {"a": {}, "b": {}}, "required": ["a", "b"]})


def test_cards_are_shown_as_signatures() -> None:
    assert cards_text((SEARCH, NOW)) == (
        '- search(words: string, limit?: integer, sort?: {"enum":["date","rank"]}, '
        'tags?: {"type":"array","items":{"type":"string"}}): Finds pages that hold the words.\n'
        "    words: What to look for.\n"
        "- now(): The time."
    )
    assert cards_text(()) == "(no tools)"


def test_a_name_is_matched_in_any_case_if_that_is_unambiguous() -> None:
    assert card_named((SEARCH, NOW), "Search") is SEARCH
    assert card_named((SEARCH, NOW), "searches") is None
    assert card_named((ToolCard("a"), ToolCard("A")), "A") == ToolCard("A")


def test_the_input_of_a_call_is_its_one_argument_or_a_json_object() -> None:
    assert arguments_for(SEARCH, " cats [and] dogs ") == {"words": "cats [and] dogs"}
    assert arguments_for(SEARCH, '{"words": "cats", "limit": 3}') == {"words": "cats", "limit": 3}
    assert arguments_for(NOW, "") == {}
    assert isinstance(arguments_for(NOW, "today"), Unreadable)
    assert isinstance(arguments_for(PAIR, "1, 2"), Unreadable)


def test_texts_become_the_numbers_a_tool_wants() -> None:
    assert convert_types(SEARCH, {"words": "7", "limit": "7", "sort": "date", "more": "x"}) == {
        "words": "7",
        "limit": 7,
        "sort": "date",
        "more": "x",
    }
    assert convert_types(SEARCH, {"limit": "many"}) == {"limit": "many"}
    assert convert_types(SEARCH, {"tags": '["a", "b"]'}) == {"tags": ["a", "b"]}
    assert convert_types(SEARCH, {"tags": '{"a": 1}'}) == {"tags": '{"a": 1}'}


def test_a_question_gives_the_tools_with_the_whole_schema_of_their_arguments() -> None:
    assert tools_data((NOW, PAIR, ToolCard("any"))) == (
        {"name": "now", "description": "The time.", "parameters": NOW.parameters},
        {"name": "pair", "description": "", "parameters": {"type": "object", **PAIR.parameters}},
        {"name": "any", "description": "", "parameters": {"type": "object", "properties": {}}},
    )
