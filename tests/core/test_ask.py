"""A question: its order, its turns, and how it is put to models and to agents."""

from msgspec.structs import replace

from reasonry.core.effects import Ask, Turn

ASK = Ask(
    "Problem: 2 + 2?",
    "You solve problems.",
    "Mark the answer.",
    "Now solve it.",
    "Step by step.",
    form={"type": "object"},
)


def test_the_task_comes_last_and_the_mark_just_before_it_and_a_model_that_reasons_is_not_told_how() -> None:
    assert ASK.question == "Problem: 2 + 2?\n\nMark the answer.\n\nNow solve it.\n\nStep by step."
    assert ASK.spelled_out(reasons=True).prompt == "Problem: 2 + 2?\n\nMark the answer.\n\nNow solve it."


def test_a_reply_with_a_mark_is_free_text_for_a_model_and_fields_for_an_agent_and_data_keeps_its_schema() -> (
    None
):
    assert ASK.spelled_out().form is None
    agent = ASK.spelled_out(has_fields=True)
    assert agent.form == ASK.form
    assert agent.prompt == "Problem: 2 + 2?\n\nNow solve it.\n\nStep by step."
    assert Ask("List them.", form={"type": "object"}).spelled_out().form == {"type": "object"}


def test_turns_are_a_conversation_and_plain_text_without_labels() -> None:
    asked = Ask("2 + 2?", "Be exact.", turns=(Turn("five", "That is wrong."), Turn("four", "Mark it.")))
    assert asked.messages == [
        ("system", "Be exact."),
        ("user", "2 + 2?"),
        ("assistant", "five"),
        ("user", "That is wrong."),
        ("assistant", "four"),
        ("user", "Mark it."),
    ]
    assert asked.text == "Be exact.\n\n2 + 2?\n\nfive\n\nThat is wrong.\n\nfour\n\nMark it."
    assert asked.question == "2 + 2?"


def test_other_words_keep_the_parts_that_stand_in_them() -> None:
    assert ASK.in_other_words(ASK.text) == ASK
    other = ASK.in_other_words("You solve problems.\n\nProblem: 3 + 3?\n\nMark the answer.\n\nNow solve it.")
    assert other == replace(ASK, prompt="Problem: 3 + 3?", step_by_step="")
    # They begin a new conversation.
    asked = Ask("2 + 2?", turns=(Turn("five", "That is wrong."),))
    assert asked.in_other_words("3 + 3?") == Ask("3 + 3?")
