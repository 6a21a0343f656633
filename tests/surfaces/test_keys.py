"""A key goes to the server that the operator named, and to no other."""

from pathlib import Path

import pytest
from msgspec import structs

from reasonry.app.app import App
from reasonry.app.participants import Participants
from reasonry.app.requests import RunRequest
from reasonry.core.budget import Budget
from reasonry.engine.journal import ParticipantNames
from reasonry.errors import UsageError
from reasonry.models.choose import open_model
from tests.servers import ModelServer

from ..engine.running import accept
from ..models.asking import question
from ..models.test_http_session import Relay, http_reply

pytestmark = pytest.mark.anyio

KEY = "sk-canary-1234567890"
REPLY = {"answer": "42", "correct": True, "steps": ["one"], "done": True, "reason": "so"}


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_does_not_take_the_key_elsewhere(status: int) -> None:
    async with Relay(b"").running() as elsewhere:
        moved = http_reply(b"", f"{status} Moved", Location=f"http://127.0.0.1:{elsewhere.port}/v1")
        async with Relay(moved).running() as relay:
            spec = f"openai-compatible:http://127.0.0.1:{relay.port}/v1#m"
            model = open_model(spec, {"REASONRY_API_KEY": KEY})
            with pytest.raises(Exception, match="redirect"):
                await model.answer(question())
            await model.close()
    assert [f"Authorization: Bearer {KEY}" in head for head in relay.heads] == [True]
    assert elsewhere.heads == []


async def a_run(store: Path, **participants: str) -> str:
    """Write a run whose record names models, as whoever can write the store might."""
    async with App(str(store), environ={}) as app:
        order, _ = app.order(
            RunRequest(
                problem="Why?",
                strategy="chain_of_thought",
                budget=Budget(),
                participants=Participants(model="offline"),
            )
        )
        order = structs.replace(order, participants=ParticipantNames(**{"model": "offline", **participants}))
        return await accept(app.engine, order)


@pytest.mark.parametrize("place", ["model", "judge_model", "draft_model"])
async def test_the_key_is_not_sent_where_only_the_record_of_a_run_says(place: str, tmp_path: Path) -> None:
    async with Relay(b"").running() as relay:
        spec = f"openai-compatible:http://127.0.0.1:{relay.port}/v1#m"
        run_id = await a_run(tmp_path / "s.db", **{place: spec})
        async with App(str(tmp_path / "s.db"), environ={"REASONRY_API_KEY": KEY}) as app:
            for go_on in (
                app.resume(run_id),
                app.order_fork(await app.engine.recorded_run(run_id), Participants(), {}, None),
            ):
                with pytest.raises(UsageError, match="REASONRY_API_KEY is sent only") as caught:
                    await go_on
                assert KEY not in str(caught.value.document())
            assert (await app.engine.read(run_id)).run.snapshot.status == "active"
        assert relay.heads == []


@pytest.mark.parametrize("way", ["--model", "REASONRY_MODEL", "REASONRY_MODELS", "other name", "no key"])
async def test_the_key_is_sent_where_the_operator_says_so(way: str, tmp_path: Path) -> None:
    with ModelServer(reply=lambda request: REPLY, api_key=None if way == "no key" else KEY) as server:
        spec = f"openai-compatible:{server.url}#m"
        other = f"openai-compatible:{server.url}#another"
        run_id = await a_run(tmp_path / "s.db", model=spec)
        settings = {
            "REASONRY_MODEL": {"REASONRY_MODEL": other},
            "REASONRY_MODELS": {"REASONRY_MODELS": f"mine={spec}"},
        }
        environ = {} if way == "no key" else {"REASONRY_API_KEY": KEY, **settings.get(way, {})}
        participants = Participants(model={"--model": spec, "other name": other}.get(way))
        async with App(str(tmp_path / "s.db"), environ=environ) as app:
            assert (await app.resume(run_id, participants)).answer == "42"


@pytest.mark.parametrize(
    "named",
    [
        "http://127.0.0.1:1/v1",
        "https://127.0.0.1:{port}/v1",
        "http://localhost:{port}/v1",
        "http://127.0.0.1.example:{port}/v1",
        "http://example.com/127.0.0.1:{port}/v1",
        "http://[/v1",
        "offline",
    ],
)
def test_another_port_scheme_or_name_is_another_server(named: str) -> None:
    spec = f"openai-compatible:{named.format(port=8000)}#m"
    with pytest.raises(UsageError, match="sent only"):
        open_model(
            "openai-compatible:http://127.0.0.1:8000/v1#m", {"REASONRY_API_KEY": KEY}, keyed_by=[spec, named]
        )


def test_a_port_that_goes_without_saying_and_capitals_make_no_difference() -> None:
    model = open_model(
        "openai-compatible:http://example.com:80/v1#m",
        {"REASONRY_API_KEY": KEY},
        keyed_by=["openai-compatible:http://EXAMPLE.com/other#x"],
    )
    assert model.name == "openai-compatible:http://example.com:80/v1#m"
