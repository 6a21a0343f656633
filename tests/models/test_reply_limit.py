"""How long a reply may be follows from the question; a longer one is cut there, booked at its limit and not read."""

from typing import Any

import pytest

from reasonry.app.app import App
from reasonry.app.participants import Participants
from reasonry.app.requests import RunRequest
from reasonry.core.budget import Budget
from reasonry.core.effects import Ask
from reasonry.engine.ports import BrokenReplyError, OnText, Question
from reasonry.engine.usage import estimate_tokens
from reasonry.models.http_session import MAX_REPLY_BYTES, MAX_STREAM_BYTES, HttpSession, reply_limit
from reasonry.models.openai_compatible import OpenAICompatibleModel
from reasonry.models.openai_wire import Gathered

from ..servers import Fault, ModelServer

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("tokens", "samples", "limit"),
    [(100, 1, 65_600), (100, 5, 72_000), (1_000_000, 1, 2_000_000), (None, 9, 2_000_000)],
)
def test_the_limit_follows_from_the_tokens_of_the_question(
    tokens: int | None, samples: int, limit: int
) -> None:
    assert reply_limit(Ask("?", max_output_tokens=tokens), samples) == limit


@pytest.mark.parametrize("tokens", [100, None])
async def test_a_reply_that_is_longer_is_booked_at_its_limit_of_tokens_and_not_looked_at(
    server: ModelServer, model: Any, watch: OnText | None, tokens: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(*_: object, **__: object) -> object:
        raise AssertionError("the reply is looked at")

    monkeypatch.setattr(Gathered, "usage", look)
    monkeypatch.setattr(
        "reasonry.engine.usage.weigh", lambda text: len(text) if len(text) < 1_000 else look()
    )
    server.reset(faults=[Fault(kind="huge")])
    with pytest.raises(BrokenReplyError, match="sent a reply of more than") as caught:
        await model.answer(Question("e1", "x", Ask("How many?", max_output_tokens=tokens)), watch)
    assert (caught.value.code, caught.value.retryable) == ("reply_too_long", False)
    usage = caught.value.usage
    assert usage.input_tokens == estimate_tokens("How many?")
    assert usage.output_tokens == (tokens or MAX_REPLY_BYTES // 16)
    assert usage.estimated_tokens == usage.tokens
    assert usage.usd is not None


async def test_no_more_of_a_reply_is_kept_than_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = list[int]()
    whole = HttpSession.read

    async def read(
        session: HttpSession, response: object, take: object, limit_bytes: int = MAX_REPLY_BYTES
    ) -> None:
        def count(piece: bytes) -> None:
            kept.append(len(piece))

        await whole(session, response, count, limit_bytes)  # type: ignore[arg-type]

    monkeypatch.setattr(HttpSession, "read", read)
    with ModelServer(faults=(Fault(kind="huge"),)) as server:
        model = OpenAICompatibleModel(server.url, "m")
        with pytest.raises(BrokenReplyError):
            await model.answer(Question("e1", "x", Ask("?", max_output_tokens=100)))
        await model.close()
    assert sum(kept) <= 65_600


async def test_a_stream_is_cut_by_its_text_and_not_by_its_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "one two three four five six seven eight nine ten " * 400
    with ModelServer(reply=lambda _: said) as server:
        model = OpenAICompatibleModel(server.url, "m")
        ask, pieces = Ask("?", max_output_tokens=6_000), list[str]()
        monkeypatch.setattr("reasonry.models.http_session.TOKEN_BYTES", 1)
        monkeypatch.setattr("reasonry.models.http_session._SPARE_BYTES", 16_000)
        # 20 kB of text come in more than a hundred kB of events.
        answer = await model.answer(Question("e1", "x", ask), pieces.append)
        assert answer.text == said
        monkeypatch.setattr("reasonry.models.http_session._SPARE_BYTES", 1_000)
        with pytest.raises(BrokenReplyError) as caught:
            await model.answer(Question("e1", "x", ask), pieces.append)
        await model.close()
    assert (caught.value.code, caught.value.usage.output_tokens) == ("reply_too_long", 6_000)
    assert MAX_STREAM_BYTES > MAX_REPLY_BYTES


async def test_a_run_asks_once_and_ends_with_the_reason() -> None:
    with ModelServer(faults=(Fault(kind="huge"),)) as server:
        async with App("memory", environ={}) as app:
            request = RunRequest(
                problem="?",
                strategy="chain_of_thought",
                budget=Budget(),
                participants=Participants(model=server.model),
            )
            result = await app.solve(*app.order(request))
        assert server.stats()["requests"] == 1
    assert (result.outcome, result.termination.code, result.usage.calls) == ("error", "reply_too_long", 1)
