"""Plain replies: a document is an answer, a closing phrase is none of it, and nothing else is left out."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec
import pytest

from reasonry.core.effects import Ask
from reasonry.core.events import Answered
from reasonry.core.machine import Pending, Snapshot, read_reply
from reasonry.core.strategy import Strategy
from reasonry.reading.conclusion import Found, Subject
from reasonry.reading.fit import Unreadable
from reasonry.reading.json_in_text import breaks_off, json_values
from reasonry.reading.no_answer import without_closing, without_opening, without_thinking
from reasonry.reading.open_task import is_open_task
from reasonry.reading.prose import blocks, find_answer, is_working
from reasonry.strategies import STRATEGIES

from .corpus import Line, Setting, ask
from .test_natural import AT_ONCE, LINES

OPEN = "Write a text for the notice board about the gas oven, and say what to do."
VALUE = "How many minutes is the journey, and when does it end?"

ESSAY = """# Why Bridges Fail

## Introduction

A bridge is a promise made in steel and stone.

## The result of neglect

If you look under a bridge, look for rust. Let me know a bridge, and I will tell you its age.

## Conclusion

Bridges fail because people forget. If you use a bridge every day, you notice nothing."""

CODE = """```python
def longest(text: str) -> int:
    answer = 0
    return {"answer": answer}["answer"]
```

**How it works:**

1. We go through the text.
2. We keep the longest run.

The answer is the function above; it runs in O(n)."""

MAIL = """Subject: The oven

Dear neighbours,

the gas oven in flat 3 was repaired:

- on Tuesday, by the caretaker
- on Thursday, by the fitter

Let me know which of these days you smelled gas. If you have questions for the fitter, call 112 30 44.

Kind regards,
Priya"""

ADVICE = "1. Unplug the oven. 2. Open the windows. If you smell gas, leave the house and call 112."
FAQ = "**Question:** Is it safe?\n**Answer:** Yes.\n\n**Question:** Who repairs it?\n**Answer:** We do."
TABLE = "| Type | Volt |\n|------|------|\n| AA | 1.5 |\n\n**Recommendation:** If you are new to it, start with AA."
VERSE = "Red bloom on old steel,\nrain has written its slow name\nwhere the gate once swung."
RECIPE = "## Soup\n\n**Ingredients**\n- 2 carrots\n\n**Result**\n\n1. Cook.\n2. Serve.\n\nEnjoy it while it is hot!"
QUESTION = "Shall we meet on 4 May? Bring gloves.\n\nWill we see you there?"
RIDDLE = "Who am I?\n\n**Solution:** The answer is an echo."

TEXTS = {
    "essay": ESSAY,
    "code": CODE,
    "mail": MAIL,
    "advice": ADVICE,
    "questions": FAQ,
    "table": TABLE,
    "verse": VERSE,
    "recipe": RECIPE,
    "post": QUESTION,
    "riddle": RIDDLE,
}

WORKED = {
    "label": "9:40 to 13:25 is 225.\n\n**Answer:** 225 minutes\n\nLet me double-check: 225 / 60 = 3.75 ✓",
    "sentence": "4 hours are 240, less 15.\n\nThe answer is 225 minutes. Note that 3 h 45 min is the same.",
    "list": "1. From 9:40 to 12:40 it is 180.\n2. Then 45 more.\n\nIn all 180 + 45 = 225. **225 minutes**",
    "formula": "First\n\n\\[\n180 + 45\n\\]\n\nSo it is \\boxed{225}, which is less than 4 hours.",
    "steps": "1. From 9:40 to 12:40 it is 180 minutes.\n2. From 12:40 to 13:25 it is 45 more.",
}

CLOSINGS = [
    "Let me know if you have any questions!",
    "Let me know if you'd like me to make it more formal!",
    "I hope this helps! 😊",
    "Would you like me to adjust the tone or the length?",
    "If you have any further questions, feel free to ask.",
    "Sag Bescheid, wenn ich noch etwas ändern soll!",
]

CONTENT = [
    "If you smell gas, leave the house and call 112.",
    "If you have a fever, see a doctor at once.",
    "Let me know if the price is above 100 euros before paying.",
    "Feel free to mention that others have the same problem, but don't name them.",
    "Enjoy it. And then come and help me carry the oven.",
    "I hope you are well and that the garden survived the storm.",
    "Have a spare key ready.",
    "Would you like to join us for dinner?",
    "Would you like me to bring the wine?",
    "Do you want a table outside?",
    "Let me know if you would like to join us for lunch.",
    "Feel free to contact me if you smell gas after that again.",
    "Is there anything else on the list for Saturday?",
    "Sag mir Bescheid, wenn du um acht am Bahnhof bist.",
    "N'hésitez pas à apporter un gâteau.",
    "Fammi sapere se vieni anche tu sabato.",
    "Avísame si llegas tarde.",
]


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_the_reply_to_an_open_task_is_its_answer(text: str) -> None:
    assert find_answer(text, Subject(OPEN, is_open=True)) == Found(text)
    for closing in CLOSINGS:
        assert find_answer(f"{text}\n\n{closing}", Subject(OPEN, is_open=True)) == Found(text)


@pytest.mark.parametrize("text", ["# Report\n\n## Cause\n\nRust.\n\n## Result\n\nIt fell, one evening, and "
                                  "nobody was there who could have told us how long it had made that noise."
                                  "\n\n## Measures\n\nPaint.", ESSAY, CODE])  # fmt: skip
def test_a_document_is_an_answer_whoever_asks(text: str) -> None:
    assert find_answer(text, Subject("The state of our bridges")) == Found(text)


def test_reasoning_before_the_one_label_of_an_open_task_is_no_part_of_the_answer() -> None:
    text = f"Step 1: Choose an image.\nStep 2: Write it.\n\n**Final Answer:**\n\n{VERSE}"
    assert find_answer(text, Subject(OPEN, is_open=True)) == Found(
        VERSE, "Step 1: Choose an image.\nStep 2: Write it."
    )
    assert find_answer(f"Answer:\n\n{MAIL}", Subject(OPEN, is_open=True)) == Found(MAIL)


@pytest.mark.parametrize(
    "line", ["Sure! Here is the e-mail:", "Gerne! Hier ist der Brief:", "Claro, aquí tienes la carta:"]
)
def test_a_first_line_that_agrees_to_write_the_text_is_no_part_of_it(line: str) -> None:
    assert find_answer(f"{line}\n\n---\n\n{MAIL}", Subject(OPEN, is_open=True)) == Found(MAIL)
    assert find_answer(f"{line}\n\n{MAIL}", Subject(OPEN, is_open=True)) == Found(MAIL)


@pytest.mark.parametrize(
    "line", ["Here is the plan:", "Of course.", "Sure! I will come. Here is why:", "Sure!"]
)
def test_a_first_line_that_may_begin_the_text_is_kept(line: str) -> None:
    found = find_answer(f"{line}\n\n{MAIL}", Subject(OPEN, is_open=True))
    assert isinstance(found, Found)
    assert found.answer.startswith(line)


@pytest.mark.parametrize(
    "line", ["it isn't attached please send it ", "so I will follow this ", "I will first: ", "1,000 "]
)
def test_a_long_line_takes_bounded_time(line: str) -> None:
    begun = time.process_time()
    for problem in (Subject(OPEN, is_open=True), Subject(VALUE)):
        find_answer(line * 4_000 + "\n\nI will\nstop here.", problem)
    assert time.process_time() - begun < 5


@pytest.mark.parametrize("sentence", CONTENT)
def test_a_sentence_with_content_is_never_taken_for_a_closing_phrase(sentence: str) -> None:
    assert without_closing(f"Open the windows. {sentence}") == f"Open the windows. {sentence}"


@pytest.mark.parametrize("closing", CLOSINGS)
def test_a_closing_phrase_goes_where_all_of_a_sentence_is_one(closing: str) -> None:
    assert without_closing(f"Open the windows.\n\n---\n\n{closing}") == "Open the windows."
    assert without_closing(f"{closing}\n\nKind regards,\nPriya").startswith(closing)


@pytest.mark.parametrize(
    ("text", "problem", "answer"),
    [
        ("ANSWER: **51**", "What is 17 times 3?", "51"),
        ("Thus, 17 * 3 equals 51.", "What is 17 times 3?", "51"),
        ("10 * 3 = 30\n7 * 3 = 21\n30 + 21 = 51", "What is 17 times 3?", "51"),
        ("The product was found by adding.\n\n### Result\n\nIt is this.\n\n**51**", "What is 17 times 3?", "51"),
        ("17 * 3 = 51.\n\nDie Antwort lautet: 51.", "Was ist 17 mal 3?", "51"),
        ("17 × 3 = 51.\n\nLa réponse est 51.", "Combien font 17 fois 3 ?", "51"),
        ("Es fácil.\n\nLa respuesta es 51.", "¿Cuánto es 17 por 3?", "51"),
        ("È facile.\n\nLa risposta è 51.", "Quanto fa 17 per 3?", "51"),
        ("É fácil.\n\nA resposta é 51.", "Quanto é 17 vezes 3?", "51"),
        ("17 × 3 = 51\n\n答案是 51。", "17 乘以 3 等于多少?", "51"),
        ("17 × 3 = 51\n\n答えは 51 です。", "17 × 3 は?", "51"),
        ("**No**, 91 is not a prime number: 91 = 7 × 13.", "Is 91 a prime number?", "No"),
        ("Total: **$60**", "What does she pay?", "$60"),
        ("It now costs **50 euros**.", "What does it cost now?", "50 euros"),
        ("Work it out. So the film ends at 22:05.", "A film starts at 19:50. When does it end?",
         "the film ends at 22:05."),
        ("8 * 9 = 72 seats in total. Since 7 are empty, 72 - 7 = 65 are taken.", "How many?", "65 are taken"),
        ("17 + 17 + 17 = 51; the answer is 51.", "What is 17 times 3?", "51"),
        ("The answer is 51.\n\nSummary: We added 17 three times.", "What is 17 times 3?", "51"),
        ("4 pages a day are 28 a week.\n\nSo, a reader gets through about 1,460 pages a year.\n\nIt's worth noting "
         "that this is only an estimate. Holidays change it.", "How many pages does a reader read in a year?",
         "a reader gets through about 1,460 pages a year."),
        ("So it was 48. Wait, that's not right: 40 / 0.8 = 50.\n\nAnswer: 50", "What was it?", "50"),
    ],
)  # fmt: skip
def test_a_short_answer_is_found_where_it_is_stated_or_concluded(
    text: str, problem: str, answer: str
) -> None:
    found = find_answer(text, Subject(problem))
    assert isinstance(found, Found)
    assert found.answer == answer


@pytest.mark.parametrize(
    ("problem", "text", "answer"),
    [
        ("How many apples are left of 8?", "One by one, **3** go.\n\nThat leaves, of 8, **5**; or 3 gone.", None),
        ("How many apples are left of 8?", "Of the 8 apples, **3** were eaten. Left are five apples.", None),
        ("What is the perimeter?", "P = 2(3 + 4) = 14\n\nThe area, by the way, is 12.", "14"),
        ("What is the median of 3, 1, 8?", "Sorted: 1, 3, 8. The middle one is 3. The mean is 4.", None),
        ("How long is the trip?", "300 / 60 = 5 hours.\n\nSo if you leave at 8:00, it is 13:00.", "5 hours"),
        ("Find the roots of x² - 4.", "x = 2\nx = -2", "x = 2\nx = -2"),
        ("Find the roots of x² - 4.", "The roots are:\n\n- x = 2\n- x = -2", "- x = 2\n- x = -2"),
        ("Solve x + y = 5 and x - y = 1.", "Adding gives 2x = 6.\n\nx = 3\ny = 2", "x = 3\ny = 2"),
        ("Solve x² - 5x + 6 = 0.", "The roots are x = 2 and x = 3.", "x = 2 and x = 3"),
        ("Solve x + y = 5 and x - y = 1.", "Thus x = 3, y = 5 - 3 = 2.", "x = 3, y = 5 - 3 = 2"),
        ("What is x if 2x = 10?", "2x = 10\nx = 5\n\nYou can verify: 2·5 = 10.", "5"),
        ("What do 3 pens cost?", "3 × $1.20 = $3.60. With a 5 dollar bill you would get $1.40 back.", "$3.60"),
        ("How many legs do 3 dogs and 2 hens have?", "Dogs: 3 × 4 = 12\nHens: 2 × 2 = 4", None),
        ("How many legs do 3 dogs and 2 hens have?", "Dogs: 12\nHens: 4\nTotal: 16", "16"),
        ("How old is Tom if Ann is 9?", "Tom is 12 now. In 3 years he is 15.", None),
        ("Solve for x: 3x + 5 = 20", "Therefore, $x = 5$.", "5"),
        ("Solve for x: 3x + 5 = 20", "Subtract 5: 3x = 15. Divide by 3: x = 5.", "5"),
        ("How many are 12 times 7?", "There are 84 of them (12 × 7 = 84).", "84 of them"),
        ("How many degrees have 6 corners?", "4 · 180° = 720°.\n\nEach angle has 120°.", None),
        ("Who is second tallest?", "Dora > Anna > Bea.\n\nThe second tallest is Anna.", "The second tallest is Anna."),
        ("Which is larger, 2^30 or 10^9?", "10⁹ = 1,000,000,000\n\n2³⁰ is larger.", "2³⁰ is larger"),
        ("What does print(2 + 1) print?", "It adds **numbers**, so it prints:\n\n```\n3\n```", "3"),
        ("What does sorted(d) return?", "The **keys**, as a list.\n\n```\n[1]\n[2]\n```\nIf so, it is one.", None),
        ("How long is the ride?", "Could you tell me the speed? Then I can work it out: t = s / v.", None),
    ],
)  # fmt: skip
def test_a_value_that_may_not_be_what_was_asked_for_is_no_answer(
    problem: str, text: str, answer: str | None
) -> None:
    found = find_answer(text, Subject(problem))
    assert (found.answer if isinstance(found, Found) else None) == answer


@pytest.mark.parametrize(
    "text",
    [
        "To write it, I would proceed as follows:\n\n1. A greeting.\n2. Thanks.\n\nI will then write each part.",
        "To write this, I'll proceed as follows:\n\n1. A greeting.\n2. Thanks.\n\nIt will be short. Shall I go ahead?",
        "Happy to help! I need a bit more information:\n\n1. Which oven?\n2. Since when?\n\nOnce you share this, I'll "
        "write a tailored text for you.",
    ],
)
def test_a_plan_or_a_question_back_is_no_text(text: str) -> None:
    assert isinstance(find_answer(text, Subject(OPEN, is_open=True)), Unreadable)


@pytest.mark.parametrize(
    "text",
    [
        "The answer is ….",
        "It is one of them.\n\nThe answer is either 41 or 51.",
        "With a quarter: 6 coins.\nAnswer: 6\nAnswer: 3",
        "Method A.\n\nAnswer: 5\n\nMethod B, with care.\n\nAnswer: 7",
        "The answer is 5. But that forgets the cans.",
        "I can't know how many people are sitting there.",
        "First, we find the speed.",
        '{"reasoning": "51", "answer": ""}',
    ],
)
def test_no_answer_and_two_answers_are_none(text: str) -> None:
    assert not isinstance(find_answer(text, Subject("How many are there?")), Found)


def test_an_answer_that_a_verifier_looks_at_stands_alone() -> None:
    assert find_answer(CODE, Subject(OPEN, alone=True)) is None
    assert find_answer(VERSE, Subject(OPEN, is_open=True, alone=True)) is None
    assert find_answer(f"Answer:\n{VERSE}", Subject(OPEN, is_open=True, alone=True)) == Found(VERSE)


def test_the_parts_of_a_text_are_all_of_it() -> None:
    for text in (*TEXTS.values(), *WORKED.values()):
        assert "".join("".join(blocks(text)).split()) == "".join(text.split())
    assert "\\[\n180 + 45\n\\]" in blocks(WORKED["formula"])


# -- the law


FORMS = [
    (strategy, stage.name)
    for strategy in STRATEGIES.values()
    for stage in strategy.stages
    if strategy.is_driven and stage.reply is not None
]
LISTS = {
    "step_decomposition",
    "approach_exploration",
    "branch_creation",
    "branch_development",
    "plan_generation",
    "differential_testing",
    "verification_planning",
    "decomposition",
    "skeleton",
}
"""What asks for a list alone, or for values: a remark around them is no part of it."""
DROPPED = re.compile(
    r"steps?|final|the|so|answers?|is|note|that|recommendation|solution|result|total|question|conclusion|in|all|boxed"
    r"|text|correct|choice|version|reasoning|plan|antwort|respuesta|réponse|la|est|donc|soluzione|ergebnis|alternativa|correta"
    r"|conjunto|solução|solución|lösungsmenge"
    r"|答案|答え|答|python|sql|json|yaml|csv|\d{1,2}",
    re.IGNORECASE,
)
"""Words of labels and of sentences that state an answer, numbers of lists, the language of a fence."""
NATURAL = LINES[::2]
ANSWERS = {
    "sequential_reasoning",
    "step_by_step_solution",
    "synthesis",
    "think",
    "initial_reasoning",
    "thought_evaluation",
}
"""Stages of all kinds that take a natural reply, of which there are many."""


@pytest.mark.parametrize("text", [*TEXTS.values(), *WORKED.values()], ids=[*TEXTS, *WORKED])
@pytest.mark.parametrize("problem", [OPEN, VALUE])
def test_every_word_of_an_accepted_reply_is_kept(problem: str, text: str) -> None:
    for strategy, stage in FORMS:
        assert not lost(strategy, stage, problem, text)


@pytest.mark.parametrize("first", range(0, len(NATURAL), AT_ONCE))
def test_every_word_of_a_natural_reply_is_kept(first: int) -> None:
    found = {line["id"]: lost_of(line) for line in NATURAL[first : first + AT_ONCE]}
    assert {name: words for name, words in found.items() if words} == {}


def lost_of(line: dict[str, Any]) -> list[str]:
    """Return the words of a natural reply that some stage takes it without."""
    text = without_opening(without_closing(without_thinking(line["reply"])))
    if breaks_off(text) or [*json_values(text)] or text.startswith(("steps:", "```yaml\nsteps:")):
        # Of a structured reply the values count.
        return []
    stages = [(strategy, stage) for strategy, stage in FORMS if stage in ANSWERS]
    return [word for strategy, stage in stages for word in lost(strategy, stage, line["problem"], text)]


def lost(strategy: Strategy, stage: str, problem: str, text: str) -> list[str]:
    """Return the words of a reply that are not in what a stage reads in it, where it takes it."""
    if stage in LISTS or (kept := read(strategy, stage, problem, text)) is None:
        return []
    words = (word for word in re.findall(r"\w+", text) if not DROPPED.fullmatch(word))
    return [f"{strategy.name}.{stage}: {word}" for word in words if word not in kept]


def read(strategy: Strategy, stage: str, problem: str, text: str) -> set[str] | None:
    """Return the words of what a stage reads in a reply; None if it does not take it, or is not asked."""
    asked = question(f"{strategy.name}.{stage}", problem)
    if asked is None or not isinstance(asked[2].effect, Ask):
        return None
    reading = read_reply(strategy.by_name[stage], asked[1].state, asked[2].effect, (Answered(text),))
    if reading.refusal is not None:
        return None
    return set(re.findall(r"\w+", "\n".join(strings(msgspec.to_builtins(reading.value)))))


@cache
def question(form: str, problem: str) -> tuple[Strategy, Snapshot, Pending] | None:
    return ask(Line("law", form, problem, "", Setting(options={"tools": ["search"]}), reads={}))


def strings(value: object) -> Iterator[str]:
    if isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            yield from strings(item)
    else:
        yield str(value)


@pytest.mark.parametrize(
    ("problem", "text", "answer"),
    [
        ("Who won, and in which year?", "Answer: Ada Borel, 1931", "Ada Borel, 1931"),
        (
            "From when until when is it open?",
            "The shop is open from 9 to 17 h.",
            "The shop is open from 9 to 17 h.",
        ),
        (
            "Who was the first to cross it?",
            "**The first to cross it was Ida Kern, in 1911.**",
            "The first to cross it was Ida Kern, in 1911.",
        ),
        ("How many are there?", "Answer: 7 or 8", None),
        ("On which day?", "The answer is Monday or Friday; nothing says which.", None),
        ("How many apples are left?", "The answer is the number of apples that are left.", None),
        (
            "On which day?",
            "Answer: day 4\n\nWait, the last day counts too.\n\nCorrected answer: day 5",
            "day 5",
        ),
        ("On which day?", "Answer: day 4\n\nWait, the last day counts too.", None),
        ("Which are the best?", "Here are three:\n\n1. **Red.**\n2. **Green.**\n3. **Blue.**", None),
        ("Which is a bird?", "$$\\boxed{\\text{(B) wren}}$$", "(B) wren"),
    ],
)
def test_nothing_is_picked_out_of_an_answer_that_says_more(
    problem: str, text: str, answer: str | None
) -> None:
    found = find_answer(text, Subject(problem))
    assert (found.answer if isinstance(found, Found) else None) == answer


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (
            "How do eels find the sea?",
            "Nobody has seen all of it.\n\nYoung eels seem to follow the smell of fresh water upstream.\n\n"
            "On the way back they swim by night, with the current.",
        ),
        (
            "Has anything been heard of the ferry to the island?",
            "The ferry was sold last year, and no other has been ordered. The island can be reached by the mail boat. "
            "It leaves at nine, if the weather allows it, and comes back at noon.",
        ),
        (
            "When was the canal opened?",
            "The canal was opened in the spring of 1887. The locks took two years more.",
        ),
        (
            "For a small town, is a tram more useful than more buses?",
            "A tram draws people who would not take a bus.\n\nA bus line is there in a month, and can be moved.\n\n"
            "Overall, the town should weigh how long its streets will stay as they are against how soon its people need"
            " another way to get to work.",
        ),
        (
            "Structure a letter to the landlord about the oven.",
            "[Your name]\n[Your address]\n\nDear landlord,\n\nthe oven smells of gas.\n\nYours sincerely,\n[Your name]",
        ),
        (
            "What are some good trees for a dry garden?",
            "1. Olive: it needs little.\n2. Fig: it needs sun.\n3. Almond: both.",
        ),
    ],
)
def test_an_explanation_and_what_is_looked_up_are_answers_whole(problem: str, text: str) -> None:
    found = find_answer(text, Subject(problem, is_open_task(problem)))
    assert found == Found(text)


@pytest.mark.parametrize(
    "text",
    [
        "Each box holds 6 eggs.\n\nThere are boxes on both shelves.\n\nThe boxes on the left are full.",
        "Let me think about the boxes. They are full.",
    ],
)
def test_the_working_for_a_value_is_no_answer(text: str) -> None:
    assert (
        find_answer(text, Subject("Two shelves have 3 boxes of 6 eggs each. How many eggs are there?"))
        is None
    )


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("If the canal had never been dug, the town would be small.\n\nIt has no other trade.", False),
        ("If I knew who dug it, I could find the year.", True),
        ("First, I need to find out who dug it.\n\nThen I look for the year.", True),
        ("Thought: the year is missing.", True),
    ],
)
def test_working_is_told_from_a_text_by_how_it_begins(text: str, is_one: bool) -> None:
    assert is_working(text) is is_one


def test_a_document_in_one_fence_of_its_own_kind_is_taken_out_of_the_fence() -> None:
    found = find_answer("```markdown\n# Title\n\nText.\n```", Subject(OPEN, is_open=True))
    assert isinstance(found, Found)
    assert found.answer == "# Title\n\nText."


def test_an_answer_that_is_taken_back_leads_to_the_next() -> None:
    reply = "100 / 5 = 20. So the answer would be 20.\n\nWait, 25 counts twice: 4 more.\n\nSo it ends in **24** zeros."
    found = find_answer(reply, Subject("How many zeros does 100! end in?"))
    assert isinstance(found, Found)
    assert found.answer == "24"
    assert found.before == reply


@pytest.mark.parametrize("mark", ["*", " ", "- ", "# ", "**a** ", "= ", "I will ", "? "])
@pytest.mark.parametrize("is_open", [False, True])
def test_the_same_over_and_over_is_read_in_a_moment(mark: str, is_open: bool) -> None:
    began = time.process_time()
    find_answer(mark * (20_000 // len(mark)), Subject("What is f(x) if x = 2?", is_open=is_open))
    assert time.process_time() - began < 3
