r"""The answer of a reply: which forms count as one, and that no others do."""

import pytest

from reasonry.blocks.answers import ReasonedAnswer
from reasonry.core.readings import ALL, UNMARKED, Unreadable
from reasonry.reading.mark import CALLS, EMPTY, closes_mark

from . import read_answer as read


@pytest.mark.parametrize(
    ("reply", "answer", "mode"),
    [
        ("So it is.\n\n<answer>159</answer>", "159", "marked"),
        ("**<answer>159</answer>**", "159", "marked"),
        ("<ANSWER>\n159\n</ANSWER>\nDo you want to know more?", "159", "marked"),
        ("<answer>159", "159", "marked"),
        ("<answer>159<answer>", "159", "marked"),
        ("It is <answer>1</answer>, so <answer>1.0</answer>.", "1.0", "marked"),
        ("I put it between <answer> and </answer>. <answer>159</answer>", "159", "marked"),
        ('The pipe is 5" wide. <answer>5"</answer>', '5"', "marked"),
        ("<answer>Answer</answer>", "Answer", "marked"),
        ("<answer>**159**</answer>", "159", "marked"),
        ("<answer>**a** or **b**</answer>", "**a** or **b**", "marked"),
        (r"<answer>\boxed{159}</answer>", r"\boxed{159}", "marked"),
        ("<answer>__init__</answer>", "__init__", "marked"),
        ("<answer>\n\n    if x:\n        y()\n \n</answer>", "    if x:\n        y()", "marked"),
        ("<answer> The roots:\n  2</answer>", "The roots:\n  2", "marked"),
        ('{"answer": "  if x:\\n    y()\\n"}', "  if x:\n    y()", "json"),
        ('<answer>{"reasoning": "r", "answer": 12}</answer>', "12", "marked"),
        ('<answer>\n```json\n{"answer": 12}\n```\n</answer>', "12", "marked"),
        ('<answer>{"answer": 12, "name": "x"}</answer>', '{"answer": 12, "name": "x"}', "marked"),
        ('{"steps": ["3 + 4 = 7"], "answer": 7}', "7", "json"),
        ('{"answer": "' + "a line\n" * 9_000 + 'b"}', "a line\n" * 9_000 + "b", "json"),
        ('```json\n{"answer": "7"}\n```', "7", "fenced"),
        ('Here it is:\n```json\n{"answer": "7"}\n```', "7", "fenced"),
        ('```json\n{"answer": "7"}\n```\nDo you want to know more?', "7", "fenced"),
        ("{'answer': 'seven',}", "seven", "repaired"),
        ('{"Answer": "7"}', "7", "json"),
        ('{"answer": "<answer>7</answer>"}', "7", "json"),
        ("reasoning: 3 and 4\nanswer: 7", "7", "yaml"),
        ("3 + 4\n\nAnswer: 7.", "7", "stated"),
        ("3 + 4\n**Final answer:** 7", "7", "stated"),
        ("3 + 4\n**Answer: 7**", "7", "stated"),
        ("Answer: **Paris** — the city on the Seine.", "**Paris** — the city on the Seine.", "stated"),
        ("**Answer:** **Paris** (since 987).", "**Paris** (since 987)", "stated"),
        (r"So it is $\boxed{\frac{1}{2}}$.", r"\frac{1}{2}", "stated"),
        ("3 + 4 = 7\n#### 7", "7", "stated"),
    ],
)
def test_these_forms_are_an_answer(reply: str, answer: str, mode: str) -> None:
    found = read(reply)
    assert not isinstance(found, Unreadable), found.reason
    assert (found[0].text, found[1]) == (answer, mode)


@pytest.mark.parametrize(
    "reply",
    [
        "It is 159.",
        '"<answer>159</answer>".',
        "```\n<answer>159</answer>\n```",
        "159",
        '"Paris"',
        "The answer is: 159.",
        "The capital of Australia is Canberra. Would you like to know why?",
        "24 + 12 = 36",
        "Could you please tell me when the heating will be repaired?",
        "My answer: Canberra. Confidence: 99%.",
        "Answer: Canberra. Confidence: 99%.",
        "Answer: 7\nAnswer: 8",
        "Answer: is it 7?",
        "Answer: …",
        "Answer: The two numbers are:",
        "(x-3)(x-7)=0.\n\n**Final answer:** The two numbers are:\n\n- 3\n- 7",
        "(x-3)(x-7)=0.\n\n**Answer:** The solutions are\n\n$$x = 3, x = 7$$",
        "Answer: Use:\n\n`ss -ltn`",
        "Answer:\n\n| a | b |\n|---|---|\n| 1 | 2 |",
        "Answer:\n- 3\n- 7",
        r"\boxed{1} or \boxed{2}",
        "#### Plan\n\nGo.\n\n#### End",
        'Such as {"answer": 7} in a text.',
        '{"final_answer": 7}',
        'As a configuration:\n```json\n{"answer": 7, "port": 80}\n```\nSave it.',
        '[{"answer": 7}]',
        'Write "<answer>7</answer>" and go.',
        "Write `<answer>7</answer>` and go.",
        "<final_answer>7</final_answer>",
    ],
)
def test_no_other_form_is_one_and_its_writer_is_asked(reply: str) -> None:
    assert read(reply) == Unreadable(UNMARKED, is_unmarked=True)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("<answer>1</answer>? No, <answer>2</answer>", "it marks two answers, '1' and '2'"),
        ("<answer>a\nb</answer> <answer>A\nb</answer>", r"it marks two answers, 'a\nb' and 'A\nb'"),
        ("<answer></answer>", EMPTY),
        ("<answer> </answer> <answer>7</answer>", EMPTY),
        ("<answer>…</answer>", EMPTY),
        ("Between <answer> and </answer>.", EMPTY),
        (r"\<answer>7\</answer>", "it closes an <answer> that it did not open"),
        ("7</answer>", "it closes an <answer> that it did not open"),
        ("<answer>a</answer> b</answer>", "it closes an <answer> that it did not open"),
        ("<answer>a <answer>b</answer>", "it does not close its <answer>"),
        ('<answer>print("</answer>")', "it does not close its <answer>"),
        ("<answer>7</anwser>", "it does not close its <answer>"),
        ("<answer>7</ans> Good luck!", "it does not close its <answer>"),
        (r"<answer>7<\answer>", "it does not close its <answer>"),
        ("<answer>a <think> b</answer>", "its <answer> holds a tag of thinking without its other half"),
        (f"<answer>{ALL}</answer>", UNMARKED),
    ],
)
def test_a_mark_in_doubt_is_asked_again(reply: str, reason: str) -> None:
    assert read(reply) == Unreadable(reason, is_unmarked=True)


@pytest.mark.parametrize(
    "reply",
    [
        '<tool_call>\n{"name": "search", "arguments": {"q": "X"}}\n</tool_call>',
        '[TOOL_CALLS][{"name": "search", "arguments": {"q": "X"}}]',
        '<invoke name="search"><parameter name="q">X</parameter></invoke>',
        "<tool_call>search\n<arg_key>q</arg_key>\n<arg_value>X</arg_value>\n</tool_call>",
        "<function=search><parameter=q>X</parameter></function>",
        "Let me look.\n<tool_call>search</tool_call>\nAnswer: 7",
        "<answer><tool_call>search</tool_call></answer>",
    ],
)
def test_the_call_of_a_tool_is_no_answer(reply: str) -> None:
    assert read(reply) == Unreadable(CALLS)


def test_a_text_about_calls_of_tools_may_be_an_answer() -> None:
    found = read("<answer>Hermes writes <tool_call> before a call.</answer>")
    assert not isinstance(found, Unreadable)
    assert found[0].text == "Hermes writes <tool_call> before a call."


@pytest.mark.parametrize("word", ["none", "None", "nothing", "N/A", "null", "no"])
@pytest.mark.parametrize("form", ['{{"answer": "{}"}}', "<answer>{}</answer>", "Nothing fits.\nAnswer: {}"])
def test_none_is_an_answer(word: str, form: str) -> None:
    found = read(form.format(word))
    assert not isinstance(found, Unreadable)
    assert found[0].text == word


@pytest.mark.parametrize("reply", ['{"answer": null}', '{"answer": ""}', '{"answer": "  "}'])
def test_null_and_the_empty_text_are_none(reply: str) -> None:
    assert isinstance(read(reply), Unreadable)


def test_what_leads_to_an_answer_stands_before_it() -> None:
    found = read("3 + 4 is 7.\n\n**<answer>7</answer>**\n\nAnything else?")
    assert found == (ReasonedAnswer(reasoning="3 + 4 is 7.", answer="7"), "marked")


def test_a_reply_that_only_repeats_its_answer_keeps_the_reasoning_before_it() -> None:
    found = read("3 + 4 is 7.", "<answer>7</answer>")
    assert found == (ReasonedAnswer(reasoning="3 + 4 is 7.", answer="7"), "marked")
    again = read("<answer>8</answer> <answer>9</answer>", "3 + 4.\n<answer>7</answer>")
    assert again == (ReasonedAnswer(reasoning="3 + 4.", answer="7"), "marked")


def test_all_of_the_last_reply_may_be_the_answer() -> None:
    assert read("A long letter.\n", f"<answer>{ALL}</answer>") == (
        ReasonedAnswer(answer="A long letter."),
        "whole",
    )


def test_a_mark_that_is_closed_was_not_cut_off() -> None:
    assert closes_mark("So <answer>7</answer> and m")
    assert not closes_mark("So <answer>7</answer> or <answer>8")
    assert not closes_mark("So 7")
