"""How streamed text is cut tells nothing about the keys that are kept, and no key is in it, however it comes."""

from collections.abc import Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from reasonry.engine.observer import HELD_CHARS, StreamedText
from reasonry.system.masking import Secrets

KEYS = ("sk-proj-CANARYab9Kd2Qx7", "sk-proj-CANARYab9K", "ana=0Zp9/Lm2+77=", "k" * HELD_CHARS)
BEGINNINGS = [key[:length] for key in KEYS for length in (1, 4, 9, len(key) - 1)]
FILLINGS = ["word ", "\n", "é", "。", "x" * 700, "{" * 2_000, "-", "***", ""]
near_keys = st.lists(st.sampled_from(BEGINNINGS + FILLINGS), max_size=12).map("".join)
cuts = st.lists(st.integers(1, 900), min_size=1, max_size=20)


def secrets_of(keys: Sequence[str]) -> Secrets:
    secrets = Secrets()
    for key in keys:
        secrets.keep(key)
    return secrets


def cut(text: str, lengths: Sequence[int]) -> list[str]:
    """The text in pieces of these lengths, over and over."""
    pieces, at = list[str](), 0
    while at < len(text):
        length = lengths[len(pieces) % len(lengths)]
        pieces.append(text[at : at + length])
        at += length
    return pieces


def shown(pieces: Sequence[str], secrets: Secrets) -> list[str]:
    stream = StreamedText(secrets)
    return [*map(stream.add, pieces), stream.end()]


@given(near_keys, cuts)
def test_the_pieces_shown_are_the_same_whichever_keys_are_kept(text: str, lengths: list[int]) -> None:
    assume(not any(key in text for key in KEYS))
    pieces = cut(text, lengths)
    expected = shown(pieces, secrets_of(()))
    assert "".join(expected) == text
    for kept in (KEYS, KEYS[:1], KEYS[2:]):
        assert shown(pieces, secrets_of(kept)) == expected


@given(near_keys, st.sampled_from(KEYS), near_keys, cuts)
def test_a_key_is_never_shown_however_it_is_cut(
    before: str, key: str, after: str, lengths: list[int]
) -> None:
    secrets = secrets_of(KEYS)
    said = "".join(shown(cut(f"{before}{key}{after}", lengths), secrets))
    assert not any(kept in said for kept in KEYS)
    assert "***" in said


def test_whole_words_are_shown_at_once_and_the_last_one_at_the_end() -> None:
    assert shown(["the ans", "wer is", " 42"], secrets_of(KEYS)) == ["the ", "answer ", "is ", "42"]


class CountingSecrets(Secrets):
    """Counts the characters that it looks at."""

    looked_at = 0

    def mask(self, text: str, *, error: bool = False) -> str:
        self.looked_at += len(text)
        return super().mask(text, error=error)

    def mask_until(self, text: str, end: int) -> tuple[str, str]:
        self.looked_at += len(text)
        return super().mask_until(text, end)


@pytest.mark.parametrize("piece", ["word and ", "x", "no-blank-in-it", "z" * 3_000])
def test_the_work_for_a_stream_is_linear_in_its_length_also_after_a_key(piece: str) -> None:
    def work(pieces: int) -> float:
        secrets = CountingSecrets()
        secrets.keep(KEYS[0])
        text = [f"{KEYS[0]} ", *[piece] * pieces]
        assert "".join(shown(text, secrets)) == f"*** {piece * pieces}"
        return secrets.looked_at / (len(piece) * pieces)

    # Each character is looked at so many times at most, however long the text is.
    assert max(work(2_000), work(8_000)) < 4
