"""The first words of a text, as titles and lists show it."""

from hypothesis import given
from hypothesis import strategies as st

from reasonry.text import shorten

LIMIT = 20


@given(st.lists(st.text("abc", min_size=1, max_size=9), max_size=12), st.sampled_from([" ", "\n\n", " \t "]))
def test_a_text_is_cut_at_a_words_end_and_only_if_it_is_too_long(words: list[str], blank: str) -> None:
    line, shown = " ".join(words), shorten(blank.join(words), LIMIT, one_line=True)
    assert len(shown) <= LIMIT
    if len(line) <= LIMIT:
        assert shown == line
    else:
        kept = shown.removesuffix("…").split(" ")
        assert kept == words[: len(kept)]
        assert shown.endswith("…")
        assert len(shown) + len(words[len(kept)]) + 1 > LIMIT


def test_a_text_without_spaces_is_cut_between_characters() -> None:
    assert shorten("思" * 30, LIMIT, one_line=True) == "思" * 19 + "…"
    assert shorten("a " + "思" * 30, LIMIT, one_line=True) == "a " + "思" * 17 + "…"
