"""What an operator lists for agents: each by its name, and nothing else."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonry.app.allow_list import AllowList
from reasonry.errors import UsageError

SPECS = [
    "openai:gpt-6-luna",
    "openai-compatible:http://127.0.0.1:8000/v1#m",
    "scripted:/srv/a=b.jsonl",
    "ollama:llama3.2:3b",
    "offline",
]
NAMES = st.from_regex(r"[A-Za-z0-9_][\w.-]{0,20}", fullmatch=True).filter(
    lambda name: name not in ("offline", "m")
)


@settings(max_examples=50)
@given(st.dictionaries(NAMES, st.sampled_from(SPECS)), st.lists(st.sampled_from(SPECS)), st.text() | NAMES)
def test_only_what_is_listed_stands_for_anything(
    by_name: dict[str, str], by_itself: list[str], asked: str
) -> None:
    entries = [f" {name} = {spec} " for name, spec in by_name.items()] + ["", *by_itself]
    allowed = AllowList.from_environ({"REASONRY_MODELS": ",".join(entries)})
    listed = {"offline": "offline", **by_name}
    listed |= {spec.rpartition("#")[2] if "://" in spec else spec: spec for spec in by_itself}
    assert {name: allowed.model(name) for name in allowed.model_names} == listed
    if asked not in listed:
        with pytest.raises(UsageError) as caught:
            allowed.model(asked)
        assert caught.value.details["choices"] == list(dict.fromkeys(("offline", *listed)))


def test_a_refusal_does_not_repeat_what_was_asked_for() -> None:
    with pytest.raises(UsageError) as caught:
        AllowList().model("openai-compatible:http://sk-secret@host/v1#m")
    assert "sk-secret" not in str(caught.value.document())


def test_reasonry_model_is_the_default_and_listed_and_else_the_first_of_the_list_is() -> None:
    both = AllowList.from_environ({"REASONRY_MODEL": " openai:a ", "REASONRY_MODELS": "b=openai:b,openai:a"})
    assert both.model(None) == both.model("openai:a") == "openai:a"
    assert both.model_names == ["openai:a", "b", "offline"]
    assert AllowList.from_environ({"REASONRY_MODELS": "b=openai:b,openai:a"}).model(None) == "openai:b"
    assert AllowList().model(None) is None
    assert AllowList().model_names == ["offline"]


def test_the_address_of_a_model_is_no_part_of_its_name() -> None:
    spec = "openai-compatible:http://10.0.0.7:8000/v1#qwen"
    allowed = AllowList.from_environ({"REASONRY_MODEL": spec, "REASONRY_MODELS": f"big={spec}-72b"})
    assert allowed.model_names == ["qwen", "big", "offline"]
    assert allowed.model(None) == allowed.model("qwen") == spec
    with pytest.raises(UsageError, match=r": offline, qwen, big$"):
        allowed.model("nobody")
    said = f"{spec}: the quota is used up; no connection to 10.0.0.7:8000: refused"
    assert allowed.hide_addresses(said) == "qwen: the quota is used up; no connection to its server: refused"
    assert allowed.hide_addresses(f"{spec}-72b failed") == "big failed"


@pytest.mark.parametrize("models", ["a=openai:x,a=openai:y", "offline=openai:x"])
def test_a_name_stands_for_one_thing(models: str) -> None:
    with pytest.raises(UsageError, match="REASONRY_MODELS"):
        AllowList.from_environ({"REASONRY_MODELS": models})


def test_arithmetic_may_always_be_named_and_other_verifiers_only_where_they_are_listed() -> None:
    allowed = AllowList.from_environ({"REASONRY_VERIFIERS": "fits=json-schema:s.json,python:v.py"})
    assert allowed.verifier("arithmetic:24") == "arithmetic:24"
    assert allowed.verifier("fits") == "json-schema:s.json"
    assert allowed.verifier("python:v.py") == "python:v.py"
    for name in ("json-schema:s.json", "python:/etc/passwd", "", "ARITHMETIC:24"):
        with pytest.raises(UsageError, match=r"arithmetic:TARGET, fits, python:v\.py"):
            allowed.verifier(name)
    assert allowed.has_verifier("json-schema:s.json")
    assert not allowed.has_verifier("json-schema:t.json")


def test_tools_and_documents_are_named_likewise() -> None:
    listed = {"REASONRY_TOOLS": "sum=calc.py:add", "REASONRY_DOCUMENTS": "handbook=/srv/h.pdf"}
    allowed = AllowList.from_environ(listed)
    assert allowed.all_of("tools", ["sum", "sum"]) == ("calc.py:add",)
    assert allowed.all_of("documents", ["handbook"]) == ("/srv/h.pdf",)
    for argument, name in (("tools", "calc.py:add"), ("documents", "/srv/h.pdf"), ("documents", "sum")):
        with pytest.raises(UsageError, match="listed"):
            allowed.all_of(argument, [name])
