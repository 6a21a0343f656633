"""Nothing secret and nothing hostile gets into what people are shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonry.models.openai_wire import MAX_SHOWN, redact
from reasonry.system.masking import Secrets


@pytest.mark.parametrize(
    "secret",
    [
        "sk-proj-AbCdEf0123456789",
        "sk-ant-api03-xyzxyzxyz123",
        "sk-ab***********wxyz",
        "AIzaSyA0123456789abcdefghij",
        "gsk_0123456789abcdef",
        "Bearer abc.def.ghi",
        "0123456789abcdef0123456789abcdef",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc",
    ],
)
def test_what_looks_like_a_key_is_starred(secret: str) -> None:
    shown = redact(f"Incorrect API key provided: {secret}. You can find it at https://example.com/keys.")
    assert secret.removeprefix("Bearer ") not in shown
    assert "***" in shown
    assert "https://example.com/keys" in shown


@given(st.text(max_size=2000), st.text(min_size=1, max_size=40))
def test_a_known_secret_never_survives_and_the_rest_is_one_short_plain_line(text: str, secret: str) -> None:
    secrets = Secrets()
    secrets.keep(secret)
    shown = redact(text + secret + text, secrets)
    assert len(shown) <= MAX_SHOWN
    assert shown.isprintable() or not any(sign in shown for sign in "\r\n\x1b\x00\u202e")
    if len(secret) > 8 and not secret.isalpha() and secret.isascii() and secret.isalnum():
        assert secret not in shown


def test_ordinary_words_stay() -> None:
    text = "The model claude-haiku-5-5 does not exist; see the documentation of rate-limiting-and-quotas"
    assert redact(text) == text
