"""From what a user writes to a model."""

import sys

import pytest

from reasonry.errors import UsageError
from reasonry.models.choose import (
    FORMS,
    default_model,
    installed_models,
    ollama_url,
    open_model,
)
from reasonry.models.openai_compatible import OpenAICompatibleModel
from tests.servers import ModelServer

from .asking import KEY, question

NOWHERE = {"OLLAMA_HOST": "127.0.0.1:9"}


@pytest.mark.parametrize(
    "spec",
    [
        "",
        " ",
        "gpt-5",
        "nobody:x",
        "openai:",
        "offline:x",
        "scripted:",
        "../../etc:passwd",
        "a" * 10_000,
        ":x",
    ],
)
def test_what_is_no_model_is_refused_with_the_legal_forms(spec: str) -> None:
    with pytest.raises(UsageError) as caught:
        open_model(spec, {})
    assert caught.value.details["choices"] == list(FORMS)
    assert len(caught.value.message) < 500


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("openai:gpt-5-mini", "OPENAI_API_KEY"),
        ("anthropic:claude-haiku-5-5", "ANTHROPIC_API_KEY"),
        ("google:gemini-3.5-flash-lite", "GOOGLE_API_KEY"),
        ("zai:glm-4.7", "ZAI_API_KEY"),
        ("groq:some-model", "pip install"),
        ("openai-compatible:http://127.0.0.1:1/v1", "#NAME"),
        ("openai:", "the model openai is written openai:NAME"),
        ("openai-compatible:nowhere#x", "http://"),
    ],
)
def test_what_is_missing_is_said(spec: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY", "ZAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UsageError, match=says):
        open_model(spec, {})


@pytest.mark.anyio
async def test_openai_zai_ollama_and_compatible_urls_open_the_own_transport() -> None:
    with ModelServer(api_key=KEY) as server:
        root = server.url.removesuffix("/v1")
        specs = {
            "openai:gpt-5-mini": {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY},
            "zai:glm-4.7": {"ZAI_BASE_URL": server.url, "ZAI_API_KEY": KEY},
            "ollama:llama": {"OLLAMA_HOST": root, "OLLAMA_API_KEY": KEY},
            f"openai-compatible:{server.url}#m": {"REASONRY_API_KEY": KEY},
            f"openai-compatible:{server.url}#n": {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY},
        }
        for spec, environ in specs.items():
            model = open_model(spec, environ)
            assert isinstance(model, OpenAICompatibleModel)
            assert (await model.answer(question())).model == model.name == spec
            await model.close()


@pytest.mark.anyio
async def test_the_key_of_openai_is_not_sent_to_other_hosts() -> None:
    with ModelServer(api_key=KEY) as server:
        model = open_model(server.model, {"OPENAI_API_KEY": KEY})
        assert isinstance(model, OpenAICompatibleModel)
        with pytest.raises(Exception, match="provided: none"):
            await model.answer(question())
        await model.close()


@pytest.mark.parametrize(
    ("environ", "spec"),
    [
        ({"REASONRY_MODEL": "openai:x", "OPENAI_API_KEY": "k"}, "openai:x"),
        ({"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}, "openai:gpt-6-luna"),
        ({"ANTHROPIC_API_KEY": "k"}, "anthropic:claude-haiku-5-5"),
        ({"GEMINI_API_KEY": "k"}, "google:gemini-3.5-flash-lite"),
        ({"ZAI_API_KEY": "k"}, "zai:glm-4.7"),
        ({"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k", "ZAI_API_KEY": "k"}, "zai:glm-4.7"),
        ({"GEMINI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}, "anthropic:claude-haiku-5-5"),
    ],
)
def test_the_default_is_what_the_environment_offers_first(environ: dict[str, str], spec: str) -> None:
    taken, why = default_model("anything", environ | NOWHERE)
    assert taken == spec
    assert why.endswith("is set")


def test_a_provider_whose_package_is_missing_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anthropic", None)
    environ = {"ANTHROPIC_API_KEY": "k", "GOOGLE_API_KEY": "k"} | NOWHERE
    assert default_model("anything", environ)[0].startswith("google:")


def test_a_running_ollama_is_taken_with_its_first_model() -> None:
    with ModelServer(models=("llama3.2:3b", "qwen3")) as server:
        environ = {"OLLAMA_HOST": server.url.removesuffix("/v1")}
        assert installed_models(environ) == ["llama3.2:3b", "qwen3"]
        assert default_model("anything", environ)[0] == "ollama:llama3.2:3b"


def test_with_nothing_there_the_error_says_what_to_set() -> None:
    with pytest.raises(UsageError, match="OPENAI_API_KEY"):
        default_model("Write me a poem about the sea", NOWHERE)


def test_with_nothing_there_a_puzzle_is_played_offline() -> None:
    assert default_model("Use 4, 9, 10 and 13 to make 24", NOWHERE)[0] == "offline"


@pytest.mark.parametrize(
    ("environ", "url"),
    [
        ({}, "http://127.0.0.1:11434/v1"),
        ({"OLLAMA_HOST": "0.0.0.0"}, "http://127.0.0.1:11434/v1"),
        ({"OLLAMA_HOST": "box:8000"}, "http://box:8000/v1"),
        ({"OLLAMA_HOST": "https://box"}, "https://box:11434/v1"),
        ({"OLLAMA_BASE_URL": "http://box/v1/", "OLLAMA_HOST": "x"}, "http://box/v1"),
    ],
)
def test_ollama_is_looked_for_where_the_environment_says(environ: dict[str, str], url: str) -> None:
    assert ollama_url(environ) == url
