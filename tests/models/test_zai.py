"""Z.AI's models over real HTTP, against the loopback server: what is sent, how it is read, what it costs."""

import json
from collections.abc import Iterator

import pytest

from reasonry.engine.ports import BrokenReplyError
from reasonry.errors import ModelError
from reasonry.models.choose import open_model
from reasonry.models.known import price_list
from reasonry.models.openai_compatible import OpenAICompatibleModel
from reasonry.models.openai_wire import Gathered, refusal_of_request
from tests.servers import ModelServer

from .asking import FORM, KEY, question

ZAI_URL = "https://api.z.ai/api/paas/v4"
SAID = '{"answer": "one two three"}'


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with ModelServer(api_key=KEY, models=("glm-4.7", "glm-4.7-flash")) as running:
        yield running


def environ(server: ModelServer) -> dict[str, str]:
    return {"ZAI_API_KEY": KEY, "ZAI_BASE_URL": server.url}


def test_without_a_base_url_the_makers_own_is_called() -> None:
    model = open_model("zai:glm-4.7", {"ZAI_API_KEY": KEY})
    assert isinstance(model, OpenAICompatibleModel)
    assert model.url == ZAI_URL
    assert model.model == "glm-4.7"
    assert model.reasons


@pytest.mark.anyio
@pytest.mark.parametrize("watched", [False, True])
async def test_a_question_is_sent_in_the_form_that_it_takes(watched: bool, server: ModelServer) -> None:
    server.reset(replies=[SAID])
    pieces: list[str] = []
    model = open_model("zai:glm-4.7", environ(server))
    answer = await model.answer(question(form=FORM), pieces.append if watched else None)
    await model.close()
    assert (answer.text, "".join(pieces)) == (SAID, SAID if watched else "")
    assert server.bodies[-1]["model"] == "glm-4.7"
    assert server.bodies[-1]["response_format"] == {"type": "json_object"}
    assert not answer.native, "the reply was held to JSON, not to the question's schema"
    assert answer.usage.usd == pytest.approx(
        price_list(ZAI_URL, "glm-4.7")(answer.usage.input_tokens, answer.usage.output_tokens, 0)
    )


def gathered(finish: str) -> Gathered:
    taken = Gathered()
    choice = {"message": {"content": "one two", "reasoning_content": "hm"}, "finish_reason": finish}
    taken.take(json.dumps({"choices": [choice]}).encode(), "zai:glm-4.7")
    return taken


@pytest.mark.parametrize(
    ("finish", "refused", "truncated"),
    [
        ("stop", False, False),
        ("sensitive", True, False),
        ("length", False, True),
        ("model_context_window_exceeded", False, True),
    ],
)
def test_its_own_reasons_to_end_are_understood(finish: str, refused: bool, truncated: bool) -> None:
    answer = gathered(finish).to_answers("zai:glm-4.7", {}, price_list(ZAI_URL, "glm-4.7"), "p")[0]
    assert (answer.text, answer.refused, answer.truncated) == ("one two", refused, truncated)


def test_a_reply_that_its_network_broke_off_is_asked_for_again() -> None:
    with pytest.raises(ModelError, match="broke off") as caught:
        gathered("network_error").to_answers("zai:glm-4.7", {}, price_list(ZAI_URL, "glm-4.7"), "p")
    assert caught.value.retryable
    assert not isinstance(caught.value, BrokenReplyError)


def test_a_used_up_balance_is_not_tried_again() -> None:
    raw = b'{"error": {"code": "1113", "message": "Insufficient balance or no resource package."}}'
    error = refusal_of_request(429, {}, raw, "zai:glm-4.7")
    assert (error.code, error.retryable) == ("rate_limited", False)
    assert "quota is used up" in str(error)
