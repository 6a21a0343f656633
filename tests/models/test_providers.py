"""Anthropic and Google over their own SDKs, against the loopback server in their own protocols."""

from collections.abc import AsyncIterator

import pytest
from pydantic_ai.exceptions import ModelHTTPError

from reasonry.engine.ports import Model
from reasonry.errors import ModelError
from reasonry.models.choose import open_model
from reasonry.models.known import price_list
from reasonry.models.providers import failure_of
from tests.servers import Fault, ModelServer

from .asking import FORM, KEY, question

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["anthropic:claude-haiku-5-5", "google:gemini-3.5-flash-lite"])
async def model(
    request: pytest.FixtureRequest, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Model]:
    for name in ("ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL"):
        monkeypatch.setenv(name, server.url.removesuffix("/v1"))
    for name in ("ANTHROPIC_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.setenv(name, KEY)
    model = open_model(request.param)
    try:
        yield model
    finally:
        await model.close()


@pytest.mark.parametrize("watched", [False, True])
async def test_an_answer_has_text_form_usage_cache_and_cost(
    model: Model, watched: bool, server: ModelServer
) -> None:
    said = '{"answer": "one two three four five six"}'
    server.reset(faults=[], replies=[said] * 2, api_key=KEY, cache_min_tokens=32, cache_block_tokens=16)
    pieces: list[str] = []
    system = "These rules stay the same from call to call. " * 10
    asked = question("What?", system=system, form=FORM, max_output_tokens=500)
    await model.answer(asked)
    answer = await model.answer(asked, pieces.append if watched else None)
    assert answer.text == said
    assert "".join(pieces) == (said if watched else "")
    assert answer.native
    assert answer.model == model.name
    assert answer.usage.input_tokens * 2 == server.stats()["prompt_tokens"]
    assert answer.usage.output_tokens * 2 == server.stats()["completion_tokens"]
    assert answer.usage.cached_input_tokens == server.stats()["cached_tokens"] > 0
    assert answer.usage.usd is not None
    assert answer.usage.usd > 0
    body = server.bodies[0]
    assert body["response_format"]["json_schema"]["schema"]["properties"] == FORM["properties"]
    assert body["max_tokens"] == 500


@pytest.mark.parametrize(
    ("kind", "code", "retryable"),
    [
        ("rate_limit", "rate_limited", True),
        ("unavailable", "provider_error", True),
        ("unauthorized", "provider_auth", False),
        ("bad_request", "provider_error", False),
        ("not_found", "provider_error", False),
        ("redirect", "provider_error", False),
        ("reset", "provider_error", True),
        ("hang", "provider_timeout", True),
        ("html", "provider_error", True),
        ("gzip_bomb", "provider_error", True),
    ],
)
async def test_a_broken_call_is_a_model_error_and_is_sent_once(
    model: Model, kind: str, code: str, retryable: bool, server: ModelServer
) -> None:
    server.reset(faults=[Fault(kind=kind, retry_after="3")], replies=[], api_key=None)
    with pytest.raises(ModelError) as caught:
        await model.answer(question(form=FORM, timeout_s=1.5 if kind == "hang" else 20))
    assert (caught.value.code, caught.value.retryable) == (code, retryable)
    assert caught.value.retry_after_s == (3.0 if kind in ("rate_limit", "unavailable") else None)
    assert KEY not in str(caught.value.document())
    assert server.stats()["requests"] == 1


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ([{"error": {"code": 400, "message": "the key is not valid"}}], "the key is not valid"),
        ({"error": {"message": "half \ud800 a character"}}, "half \ufffd a character"),
        ("gone", "gone"),
    ],
)
def test_a_refusal_says_why_in_whichever_form_it_comes(body: object, shown: str) -> None:
    failure = failure_of(ModelHTTPError(400, "m", body), "google:m")
    assert failure.message == f"google:m refused the request (400): {shown}"


@pytest.mark.parametrize(
    ("kind", "truncated", "refused"),
    [
        ("truncated", True, False),
        ("refusal", False, True),
        ("content_filter", False, True),
        ("empty", False, False),
    ],
)
async def test_truncation_and_refusal_are_told_apart(
    model: Model, kind: str, truncated: bool, refused: bool, server: ModelServer
) -> None:
    server.reset(faults=[Fault(kind=kind)], replies=[], api_key=None)
    answer = await model.answer(question())
    assert (answer.truncated, answer.refused) == (truncated, refused)


@pytest.mark.parametrize(
    ("url", "model", "known"),
    [
        ("https://api.openai.com/v1", "gpt-5-mini", True),
        ("http://127.0.0.1:8000/v1", "gpt-5-mini", True),
        ("http://127.0.0.1:8000/v1", "llama-3.3-70b", False),
        ("https://llm.example.com/v1", "llama-3.3-70b", False),
        ("https://api.openai.com/v1", "no-such-model", False),
    ],
)
async def test_a_price_is_known_or_none_but_never_made_up(url: str, model: str, known: bool) -> None:
    price = price_list(url, model)(1_000_000, 1_000_000, 0)
    assert (price is not None) == known
    if known:
        assert price == pytest.approx(2.25)
