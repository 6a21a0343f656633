"""Keys are found as they are and escaped for JSON and URLs, and nothing but keys is masked."""

import base64
import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import Struct

from reasonry.core.events import Answered, Failed, ToolReturned, Usage
from reasonry.system.masking import SECRETS, Secrets
from reasonry.tools.mcp_transport import read_targets
from tests.servers.echoes import echo, written

KEY = "sk-CANARY0123456789abcdef"
keys = st.text(
    st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="\\"), min_size=16, max_size=60
)
json_text = st.text(st.sampled_from('ab \\"/\n\tnrtu0%é'), max_size=40)


def knowing(*keys: str) -> Secrets:
    secrets = Secrets()
    for key in keys:
        secrets.keep(key)
    return secrets


@settings(deadline=None)
@given(keys.filter(lambda key: len(set(key)) > 8), st.text(max_size=30), st.text(max_size=30))
@example("x1" * 12 + "/+=", "\\", "\\")
@example("%41%42" + "a1" * 12, "%", "0")
@example("a_aeeegiinlnnoqrsstu", "", "")
@example("mostly-lowercase", "", "")
@example("1234567890123456", "", "")
@example("000%090000123456", "", "")
@example("0000123456aU0041%c", "", "")
def test_a_key_is_masked_as_it_is_and_escaped(key: str, before: str, after: str) -> None:
    secrets = knowing(key)
    for way in written(key):
        masked = secrets.mask(f"{before} {way} {after}")
        assert way not in masked
        assert key not in masked
        assert "***" in masked


@settings(deadline=None)
@given(st.text(max_size=200))
@example("100% of 'not-needed' \\u00e9 \\n")
def test_text_without_a_key_stays_the_same(text: str) -> None:
    assert knowing(KEY).mask(text, error=True) is text


@settings(deadline=None)
@given(json_text, json_text, st.sampled_from([KEY, 'nk/"quote\\d"-0123456789', "u00410123456789abcdefgh"]))
def test_json_stays_json(before: str, after: str, key: str) -> None:
    secrets = knowing(key)
    document = {"a": before + key + after, key: [after, before + key]}
    for text in (json.dumps(document), json.dumps(document, ensure_ascii=False)):
        assert key not in str(json.loads(secrets.mask(text)))


@pytest.mark.parametrize(
    "key",
    ["", "a", "the", "1234", "12345678", "none", "test", "EMPTY", "not-needed", "placeholder", "sk-none"],
)
def test_a_key_that_is_a_word_masks_nothing_but_itself_in_errors(key: str) -> None:
    secrets = knowing(key)
    text = f"the test of 123456789 had none of the not-needed placeholders; {key}s, un{key}, {key}"
    assert secrets.mask(text) == text
    said = secrets.mask(f"wrong key {key}; {key}s un{key}", error=True)
    assert said == (f"wrong key ***; {key}s un{key}" if len(key) >= 4 else f"wrong key {key}; {key}s un{key}")


def test_the_environment_is_searched_by_name_and_only_for_what_can_be_a_key() -> None:
    secrets = Secrets()
    secrets.keep_environment(
        {
            "SOME_API_KEY": "abc123def456",
            "DB_PASSWORD": "hunter2-hunter2",
            "GITHUB_TOKEN": " ghp_0123456789 ",
            "DSN": "postgres://me:p%40ss-w0rd-1@host/db",
            "SSL_KEY": "/etc/ssl/private/server1.key",
            "FEATURE_TOKEN": "enabled",
            "PUBLIC_KEY": "a b c 1 2 3",
            "REASONRY_TOKENS": "ana=0123456789abcdef",
            "HOME": "/home/user-0123456789",
            "BAD_URL": "http://[@::",
        }
    )
    for key in ("abc123def456", "hunter2-hunter2", "ghp_0123456789", "p@ss-w0rd-1", "p%40ss-w0rd-1"):
        assert secrets.mask(f"it is {key}.") == "it is ***."
    for text in (
        "/etc/ssl/private/server1.key",
        "ana=0123456789abcdef",
        "enabled",
        "a b c 1 2 3",
        "/home/user-0123456789",
    ):
        assert secrets.mask(text, error=True) == text


def test_the_headers_and_the_environment_of_tool_servers_are_kept(tmp_path: Path) -> None:
    servers = {
        "a": {
            "url": "https://me:url-p4ssw0rd@host/mcp",
            "headers": {"Authorization": "Bearer tok-0123456789"},
        },
        "b": {
            "url": "https://host",
            "headers": {"X-Api-Key": "xk-9876543210", "Accept": "application/x-json1"},
        },
        "c": {"command": "run", "env": {"NOTES_TOKEN": "notes-0a1b2c3d", "LEVEL": "debug-level-1"}},
    }
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    read_targets(str(tmp_path / "mcp.json"))
    for key in ("url-p4ssw0rd", "tok-0123456789", "xk-9876543210", "notes-0a1b2c3d"):
        assert SECRETS.mask(f"it is {key}.") == "it is ***."
    assert SECRETS.mask("application/x-json1 at debug-level-1") == "application/x-json1 at debug-level-1"


class Box(Struct, frozen=True):
    inner: Any


def test_documents_and_events_are_masked_through_and_through() -> None:
    secrets = knowing(KEY)
    value = {"a": [f"x {KEY}", (KEY, 1)], KEY: {"b": None, "c": 1.5}}
    assert secrets.mask_data(value) == {"a": ["x ***", ("***", 1)], "***": {"b": None, "c": 1.5}}
    assert secrets.mask_data(Failed("tool_error", KEY, tried=(f"1: {KEY}",))) == Failed(
        "tool_error", "***", tried=("1: ***",)
    )
    assert secrets.mask_data(ToolReturned(value)).value == secrets.mask_data(value)
    assert secrets.mask_data(Box(Box(KEY))) == Box(Box("***"))
    event = Answered("fine", usage=Usage(input_tokens=3))
    assert secrets.mask_data(event) is event


@pytest.mark.parametrize("hostile", ["\\", "%2d", "sk-", "sk%2d", "sk\\u002d", KEY[:-1], KEY, "x"])
def test_hostile_text_takes_no_longer_than_its_length(hostile: str) -> None:
    def took(size: int) -> float:
        began = time.process_time()
        secrets.mask(hostile * (size // len(hostile)) + written(KEY)[3])
        return time.process_time() - began

    secrets = knowing(KEY)
    took(10_000)
    small, large = (min(took(size) for _ in range(3)) for size in (50_000, 400_000))
    assert large < max(small, 0.002) * 8 * 4


def test_a_long_key_is_masked_whole() -> None:
    key = base64.b64encode(bytes(range(256)) * 4).decode().rstrip("=")
    assert knowing(key).mask(f"a {key} z") == "a *** z"


def test_the_error_document_of_the_test_server_is_masked_whole() -> None:
    said = knowing(KEY).mask(echo(KEY).decode())
    assert not [way for way in written(KEY) if way in said]
    assert json.loads(said)["error"]["message"].count("***") == len(written(KEY))
