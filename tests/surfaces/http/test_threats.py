"""What others may try on the server; the numbers are those of the project's list of threats."""

import asyncio
import base64
import contextlib
import gzip
import json
import logging
import os
import re
import stat
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonry.errors import StoreError, UsageError
from reasonry.stores.database import connect
from reasonry.stores.sqlite import MemoryStore, SqliteStore
from reasonry.surfaces.http.admission import check_host, check_origin, find_principal
from reasonry.surfaces.http.health import Answering, Health
from reasonry.surfaces.http.server_settings import (
    ServerSettings,
    read_allowed_hosts,
    read_tokens,
    read_tokens_file,
    read_usd_a_day,
)

from ..contract.uses import UNKNOWN
from .serving import TOKENS, Serving, digests, eventually, serve_in_thread
from .test_sessions_api import begin, thought
from .wire import Wire, ask

ANA = TOKENS["ana"]
JSON = "Content-Type: application/json"
PROTECTED = ("/api/sessions", "/api/openapi.json", "/metrics", "/v1/models", "/mcp", "/api/none")


def code(answer: tuple[int, Any]) -> tuple[int, str]:
    status, document = answer
    return status, document["error"]["code"]


# -- browsers and the network


def own_host(serving: Serving) -> str:
    return serving.url.removeprefix("http://")


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        "http://127.0.0.1.evil.example",
        "http://127.0.0.1:1",
        "http://127.0.0.1",
        "http://localhost@evil.example",
        "http://evil.example/127.0.0.1",
        "chrome-extension://abcdef",
        "file://",
        "",
        "HTTPS://EVIL.example",
    ],
)
def test_a01_pages_of_other_sites_change_nothing(serving: Serving, origin: str) -> None:
    client = serving.client()
    before = client.get("/api/sessions").json()
    for media_type in ("text/plain", "application/json"):
        headers = {"Origin": origin, "Content-Type": media_type}
        for path in ("/api/sessions", "/mcp", "/v1/chat/completions"):
            answer = client.post(path, content=json.dumps(thought(1)), headers=headers)
            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden_origin")
    assert client.get("/api/sessions").json() == before


def test_a01_the_own_page_is_answered_and_so_is_who_sends_no_origin(serving: Serving) -> None:
    client, own = serving.client(), {"Origin": f"http://{own_host(serving)}", "Sec-Fetch-Site": "same-origin"}
    assert client.post("/api/sessions", json=thought(1), headers=own).status_code == 201
    assert client.post("/api/sessions", json=thought(1)).status_code == 201
    assert client.get("/api/sessions", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert client.get("/api/sessions", headers={"Sec-Fetch-Site": "same-site"}).status_code == 403
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert client.get("/", headers=link).status_code == 200


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("evil.example", 421),
        ("evil.example:{port}", 421),
        ("127.0.0.1.evil.example:{port}", 421),
        ("localhost.evil.example", 421),
        ("169.254.169.254", 421),
        ("0.0.0.0:{port}", 421),
        ("2130706433", 421),
        ("127.0.0.1:{port}/x?", 400),
        ("127.0.0.1:{port}?x", 400),
        ("127.0.0.1:{port}#", 400),
        ("user@127.0.0.1:{port}", 400),
        ("127.0.0.1:{port}:{port}", 400),
        ("127.0.0.1:port", 400),
        ("127.0.0.1 ", 200),
        ("", 400),
        ("[::1", 400),
        ("a" * 300, 400),
        ("127.0.0.1\t.evil.example", 400),
        ("[::1]:{port}", 200),
        ("LOCALHOST:{port}", 200),
        ("localhost.", 200),
        ("localhost:1", 200),
    ],
)
def test_a02_a08_a_host_that_is_not_this_servers_is_answered_nothing(
    serving: Serving, host: str, status: int
) -> None:
    host = host.format(port=serving.url.rpartition(":")[2])
    found, _ = ask(serving, "GET /api/sessions HTTP/1.1", f"Host: {host}", "Connection: close")
    assert found == status


def test_a02_a_request_has_one_host(serving: Serving) -> None:
    own = own_host(serving)
    assert ask(serving, "GET /api/sessions HTTP/1.1")[0] == 400
    assert ask(serving, "GET /api/sessions HTTP/1.1", f"Host: {own}", "Host: evil.example")[0] == 400
    assert ask(serving, "GET http://evil.example/api/sessions HTTP/1.1", "Host: evil.example")[0] == 421


def test_a02_names_are_allowed_one_by_one() -> None:
    allowed = ServerSettings(allowed_hosts=read_allowed_hosts("Think.Example, box"))
    for host in ("think.example", "think.example:443", "BOX:1", "localhost"):
        check_host([host], allowed)
    for host in ("xthink.example", "think.example.evil.example", "other"):
        with pytest.raises(UsageError, match="does not have this host name"):
            check_host([host], allowed)
    check_origin({"origin": "https://think.example", "host": "think.example"})
    elsewhere = ServerSettings(host="192.0.2.7", tokens={b"x": "ana"})
    check_host(["whatever.example:8080"], elsewhere)
    with pytest.raises(UsageError, match="malformed"):
        check_host(["what ever"], elsewhere)


@given(st.text(max_size=40))
def test_a02_a_host_is_allowed_or_refused_whatever_it_is(host: str) -> None:
    try:
        check_host([host], ServerSettings())
    except UsageError:
        return
    assert re.fullmatch(r"(?i)(localhost|127\.0\.0\.1|\[::1\])\.?(:[0-9]{1,5})?", host)


def test_a03_no_site_is_let_read_or_frame(serving: Serving) -> None:
    client = serving.client()
    asked = {"Origin": "https://evil.example", "Access-Control-Request-Method": "DELETE"}
    preflight = client.options("/api/sessions", headers=asked)
    for answer in (preflight, *map(client.get, ("/", "/api/sessions", "/api/none", "/healthz"))):
        assert not [name for name in answer.headers if name.startswith("access-control-")]
        assert "set-cookie" not in answer.headers
        policies = answer.headers.get_list("content-security-policy")
        assert len(policies) == 1
        assert "default-src 'none'" in policies[0]
        assert "frame-ancestors 'none'" in policies[0]
        assert "unsafe" not in policies[0]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["x-request-id"]
    assert preflight.status_code in (403, 405)


def test_a04_an_address_that_others_reach_needs_tokens() -> None:
    for host in ("0.0.0.0", "::", "192.0.2.7", "example.org", ""):
        with pytest.raises(UsageError, match="REASONRY_TOKENS"):
            ServerSettings(host=host).check()
        ServerSettings(host=host, tokens={b"digest": "ana"}).check()
        with pytest.raises(UsageError, match="REASONRY_TOKENS"):
            ServerSettings(allowed_hosts=frozenset({"localhost", host})).check()
    for host in ("127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost", "LOCALHOST"):
        ServerSettings(host=host, allowed_hosts=frozenset({host})).check()


# -- identity


def test_a05_a06_what_is_anothers_looks_exactly_like_what_is_not_there(guarded: Serving) -> None:
    ana, ben = guarded.client(TOKENS["ana"]), guarded.client(TOKENS["ben"])
    session_id = begin(ana, "only mine", "herons")

    def seen(client: httpx2.Client, named: str) -> list[tuple[int, str]]:
        # `test_schema` asks every operation for the id.
        answers = [
            client.get("/api/search", params={"query": "herons", "session_id": named}),
            client.get("/api/sessions", params={"cursor": named}),
        ]
        return [
            (answer.status_code, re.sub(r'"request_id":"[^"]*"', "", answer.text.replace(named, "ID")))
            for answer in answers
        ]

    assert seen(ben, session_id) == seen(ben, UNKNOWN)
    assert ben.get("/api/search", params={"query": "herons"}).json()["matches"] == []
    assert session_id not in ben.get("/api/sessions").text
    assert ana.get(f"/api/sessions/{session_id}").json()["thought_history_length"] == 2


BAD_KEYS = [
    "",
    "Bearer",
    "Bearer wrong",
    f"Basic {base64.b64encode(f'ana:{ANA}'.encode()).decode()}",
    f"bearer\t{ANA}",
    f"Bearer {ANA}x",
    f"Bearer {ANA[:-1]}",
    f"Bearer {ANA} {ANA}",
    f"Bearer {ANA},{ANA}",
    f"Bearer {ANA.upper()}",
    f"Token {ANA}",
    "Bearer ' OR 1=1--",
    "Bearer ana",
    "Bearer " + "é" * 20,
    "Bearer " + base64.b64encode(b'{"alg":"none"}').decode() + ".e30.",
]


@pytest.mark.parametrize("key", BAD_KEYS)
def test_a07_what_is_no_token_is_refused_everywhere(guarded: Serving, key: str) -> None:
    client = guarded.client()
    for path in PROTECTED:
        answer = client.get(path, headers={"Authorization": key.encode()})
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthorized"), path
        assert answer.headers["www-authenticate"] == "Bearer"


def test_a07_a_key_of_any_size_or_kind_is_refused_and_the_server_goes_on(guarded: Serving) -> None:
    line, host = "GET /api/sessions HTTP/1.1", f"Host: {own_host(guarded)}"
    assert ask(guarded, line, host, f"Authorization: Bearer {'k' * 1_000_000}")[0] in (401, 431)
    assert ask(guarded, line, host, f"Authorization: Bearer {'k' * 50_000}")[0] == 401
    assert ask(guarded, line, host, f"Authorization: Bearer {ANA}\0x")[0] in (400, 401)
    assert ask(guarded, line, host, *(f"X-{number}: {'v' * 100}" for number in range(2_000)))[0] == 431
    # Where the line comes in one piece, the parser refuses it before anything else looks at it.
    assert ask(guarded, f"GET /api/{'x' * 200_000} HTTP/1.1", host)[0] in (400, 401, 404, 431)
    twice = ask(guarded, line, host, "Authorization: Bearer wrong", f"Authorization: Bearer {ANA}")
    assert twice[0] == 401
    assert guarded.client(ANA).get("/api/sessions").status_code == 200


def test_a09_a_token_in_the_address_is_none(guarded: Serving) -> None:
    client = guarded.client()
    for name in ("token", "access_token", "api_key", "key"):
        assert client.get("/api/sessions", params={name: ANA}).status_code == 401
    assert client.get("/api/sessions", headers={"Cookie": f"token={ANA}"}).status_code == 401
    assert client.get("/api/sessions", headers={"X-Api-Key": ANA}).status_code == 401


@pytest.mark.parametrize(
    "path",
    [
        "//api/sessions",
        "/./api/sessions",
        "/api/..;/sessions",
        "/api/../api/sessions",
        "/assets/../api/sessions",
        "/assets/%2e%2e/api/sessions",
        "/assets/..%2fapi%2fsessions",
        "/healthz/../api/sessions",
        "/healthz;/api/sessions",
        "/healthz%00/api",
        "/API/sessions",
        "/api/sessions/",
        "/api/sessions%20",
        "/api/sessions.",
        "/api%2fsessions",
        "/api\\sessions",
        "/%61pi/sessions",
        "/?/api/sessions",
        "/metrics",
        "/docs",
        "/openapi.json",
        "/redoc",
        "/authorize",
        "/callback",
    ],
)
def test_a08_no_trick_with_a_path_gets_past_the_token(guarded: Serving, path: str) -> None:
    status, document = ask(guarded, f"GET {path} HTTP/1.1", f"Host: {own_host(guarded)}")
    if path.startswith("/?"):
        assert status in (200, 400)
        assert "sessions" not in str(document)
    else:
        assert status in (400, 401, 404), status


@pytest.mark.parametrize(
    "method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"]
)
def test_a08_no_method_gets_past_the_token(guarded: Serving, method: str) -> None:
    for path in PROTECTED:
        assert guarded.client().request(method, path).status_code == 401


@given(st.text(max_size=60))
def test_a08_only_what_is_listed_is_open(path: str) -> None:
    tokens = digests(TOKENS)
    try:
        find_principal(tokens, f"/{path}", None)
    except UsageError:
        return
    assert path in ("", "healthz") or path.startswith("assets/")


# -- the shape of what comes in

DEEP = b"[" * 100_000 + b"]" * 100_000
NESTED = b'{"thought":' + b'{"a":' * 70 + b"1" + b"}" * 70 + b"}"
BODIES = [
    b"",
    b"{",
    b"null",
    b"[]",
    b"1",
    b'"text"',
    DEEP,
    NESTED,
    b'{"a":' * 5_000,
    b'"' * 4_000_000,
    b'{"thought": NaN}',
    b'{"thought_number": 1e999}',
    b'{"thought_number": ' + b"9" * 5_000 + b"}",
    b'{"thought_number": 9223372036854775808}',
    b'{"thought": "\\ud800"}',
    b'{"thought": "\xff\xfe"}',
    b'{"thought": "a\x00b"}',
    json.dumps(thought(1, "x", data={"__class__": 1, "lc": 1}, stage="' OR 1=1--")).encode(),
    json.dumps(thought(2**63)).encode(),
    json.dumps(thought(-1)).encode(),
    json.dumps(thought(1, branch_id="../../etc/passwd", branch_from_thought=1)).encode(),
    json.dumps({**thought(1), "base_url": "http://169.254.169.254/"}).encode(),
]


@pytest.mark.parametrize("body", BODIES, ids=[repr(body[:24]) for body in BODIES])
def test_a10_a_body_of_any_shape_is_refused_and_changes_nothing(serving: Serving, body: bytes) -> None:
    client = serving.client()
    before = client.get("/api/sessions").json()
    answer = client.post("/api/sessions", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 413), answer.text[:200]
    assert answer.json()["error"]["code"] in ("invalid_request", "payload_too_large")
    assert client.get("/api/sessions").json() == before


def test_a10_a_body_that_is_too_large_is_not_read(serving: Serving) -> None:
    host = f"Host: {own_host(serving)}"
    told = ask(serving, "POST /api/sessions HTTP/1.1", host, JSON, "Content-Length: 99999999999")
    assert code(told) == (413, "payload_too_large")
    with Wire(serving) as wire:
        wire.send(
            f"POST /api/sessions HTTP/1.1\r\n{host}\r\n{JSON}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        )
        for _ in range(100):
            wire.send(b"10000\r\n" + b"x" * 65_536 + b"\r\n")
        assert code(wire.answer()) == (413, "payload_too_large")


@pytest.mark.parametrize("length", ["-1", "1, 2", "0x10", "99999999999999999999999999", "abc", "１"])
def test_a10_a_length_that_is_none_is_refused(serving: Serving, length: str) -> None:
    headers = f"POST /api/sessions HTTP/1.1\r\nHost: {own_host(serving)}\r\nContent-Length: {length}\r\n\r\n"
    with Wire(serving) as wire:
        wire.send(headers.encode())
        assert wire.answer()[0] in (400, 413)


def test_a10_a_body_has_one_length(serving: Serving) -> None:
    lines = ("POST /api/sessions HTTP/1.1", f"Host: {own_host(serving)}", JSON)
    smuggled = b"0\r\n\r\nGET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
    assert ask(serving, *lines, "Content-Length: 4", "Transfer-Encoding: chunked", body=smuggled)[0] == 400
    assert ask(serving, *lines, "Content-Length: 4", "Content-Length: 5", body=b"{}  ")[0] == 400


def test_a10_a_compressed_body_is_refused_before_it_is_unpacked(serving: Serving) -> None:
    bomb = gzip.compress(b" " * 50_000_000)
    for encoding in ("gzip", "deflate", "br", "identity, gzip"):
        headers = {"Content-Encoding": encoding, "Content-Type": "application/json"}
        answer = serving.client().post("/api/sessions", content=bomb, headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (415, "unsupported_media_type")


@pytest.mark.parametrize(
    "media_type", ["text/plain", "application/x-www-form-urlencoded", "", "multipart/form-data"]
)
def test_a10_a_body_is_json_and_says_so(serving: Serving, media_type: str) -> None:
    content, headers = json.dumps(thought(1)).encode(), {"Content-Type": media_type}
    assert serving.client().post("/api/sessions", content=content, headers=headers).status_code == 415


@pytest.mark.parametrize(
    "head",
    [b"\x16\x03\x01\x02\x00\x01\x00", b"GET\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
)
def test_a10_what_is_not_http_is_refused(serving: Serving, head: bytes) -> None:
    with Wire(serving) as wire:
        wire.send(head + b"\r\n" * 4)
        assert wire.answer()[0] in (400, 0)
    assert serving.client().get("/healthz").status_code == 200


# -- secrets

CANARY = "sk-CANARY-2f9d61c07be84a35"
PROBLEM = "how many grey herons stand at the lake"


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Serving, Path]]:
    """A server whose environment has a key."""
    folder = tmp_path_factory.mktemp("keyed")
    environ = {"OPENAI_API_KEY": CANARY}
    with serve_in_thread(str(folder / "s.db"), environ, tokens=TOKENS) as server:
        yield server, folder


def test_a09_a30_a33_no_key_token_path_or_trace_is_in_an_answer_a_log_or_the_store(
    keyed: tuple[Serving, Path], caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    server, folder = keyed
    client, said = server.client(ANA), list[str]()
    caplog.set_level(logging.DEBUG)

    def broken(*_: object, **__: object) -> Any:
        raise RuntimeError(f"{PROBLEM} {CANARY} {ANA}")

    session_id = begin(client, f"{PROBLEM} {CANARY}", f"more {CANARY} {'x' * 40_000} {CANARY}")
    own = f"/api/sessions/{session_id}"
    looks = (own, f"{own}/page", f"{own}/export", "/api/search?query=CANARY", "/api/models", "/metrics")
    wrong = ("/api/openapi.json", f"/api/sessions?cursor={CANARY}", f"/api/strategies/{CANARY}")
    answers = [
        *map(client.get, (*looks, *wrong)),
        client.post("/api/sessions", json={CANARY: 1}),
        server.client("wrong").get("/api/sessions"),
    ]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("reasonry.surfaces.http.listings.describe", broken)
        failed = client.get("/api/strategies")
    assert (failed.status_code, failed.json()["error"]["code"]) == (500, "internal_error")
    said += [str(answer.headers) + answer.text for answer in [*answers, failed]]
    for text in said:
        assert CANARY not in text
        assert ANA not in text
        assert not re.search(r"Traceback|\.py\b|SELECT |/root/|/home/", text)
        assert str(folder) not in text
    own = [record for record in caplog.records if not record.name.startswith(("httpx", "httpcore"))]
    logged = "\n".join(map(logging.Formatter().format, own)) + "".join(capfd.readouterr())
    assert failed.json()["error"]["request_id"] in logged
    for secret in (CANARY, ANA, PROBLEM):
        assert secret not in logged
    stored = b"".join(path.read_bytes() for path in folder.iterdir() if path.is_file())
    assert PROBLEM.encode() in stored
    assert CANARY.encode() not in stored
    assert ANA.encode() not in stored


@pytest.mark.skipif(os.name != "posix", reason="rights of files are POSIX's")
def test_a32_the_store_is_its_owners_alone(keyed: tuple[Serving, Path]) -> None:
    _, folder = keyed
    for path in folder.iterdir():
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077, path


@pytest.mark.parametrize(
    "text",
    [
        "ana",
        "ana=short",
        "=long-enough-token-123",
        "ana=has a space in it ok",
        "ana=tabs\tin-the-token-12",
        "a b=long-enough-token-123",
        "ana=ümlaut-token-long-enough",
        "ana=same-token-for-two-12,ben=same-token-for-two-12",
        f"{'x' * 65}=long-enough-token-123",
        "",
        " , ,\n",
    ],
)
def test_tokens_that_are_none_are_refused_without_being_shown(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_tokens(text, "REASONRY_TOKENS")
    token = text.partition("=")[2].partition(",")[0]
    assert not token or token not in str(refused.value)


def test_tokens_are_kept_as_digests_and_the_operator_is_one_of_the_principals(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(
        "# who may come in\nana=ana-token-7Zt4qRk0Vb\n\noperator = op-token-55ccEE77==\n", "utf-8"
    )
    tokens = read_tokens_file(file)
    assert tokens == digests({"ana": "ana-token-7Zt4qRk0Vb", "": "op-token-55ccEE77=="})
    assert "token" not in repr(ServerSettings(tokens=tokens).tokens)
    assert find_principal(tokens, "/api/x", "Bearer op-token-55ccEE77==") == ""
    (tmp_path / "none").write_text("# nobody\n", "utf-8")
    for name in ("none", "missing", "."):
        with pytest.raises(UsageError):
            read_tokens_file(tmp_path / name)


def test_dollars_a_day_are_of_one_or_of_all() -> None:
    limits = ServerSettings(usd_a_day=read_usd_a_day("2.50, ana=10, operator=0"))
    assert [limits.usd_a_day_of(name) for name in ("ana", "ben", "")] == [10, 2.5, 0]
    assert ServerSettings().usd_a_day_of("ana") is None
    for text in ("-1", "ana=", "nan", "inf", "ana=1e9", "x y=1"):
        with pytest.raises(UsageError, match="USD"):
            read_usd_a_day(text)


# -- health and the end


@pytest.mark.anyio
async def test_a_store_that_is_slow_is_not_taken_for_one_that_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reasonry.surfaces.http.health.EVERY_S", 0.02)
    store, answers, seen = SqliteStore(tmp_path / "store.db"), threading.Event(), set[bool]()
    health = Health(store, 0.5)
    await store.runs()
    watching = asyncio.create_task(health.watch())
    try:
        # All are one commit, and the probe comes after it.
        busy = asyncio.gather(*(store.write(lambda tx: time.sleep(0.1)) for _ in range(10)))
        while not busy.done():
            seen.add(health.writes.is_up)
            await asyncio.sleep(0.01)
        assert seen == {True}
        hanging = asyncio.create_task(store.write(lambda tx: answers.wait()))
        while health.writes.is_up:
            await asyncio.sleep(0.01)
        answers.set()
        await hanging
        while not health.writes.is_up:
            await asyncio.sleep(0.01)
    finally:
        answers.set()
        watching.cancel()
        await store.close()


@pytest.mark.anyio
async def test_a_reply_that_begins_as_the_store_stops_answering_is_sent_whole() -> None:
    async def fail() -> None:
        raise StoreError("gone")

    answering = Answering(MemoryStore(), 1, fail)
    watching = asyncio.create_task(answering.watch())
    async with answering.waiting() as reply_begins:
        while answering.is_up:
            await asyncio.sleep(0)
        reply_begins()
        await asyncio.sleep(0.01)
    watching.cancel()


def test_reads_go_on_while_another_process_holds_the_lock_of_the_store(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reasonry.surfaces.http.health.EVERY_S", 0.1)
    path = folder / "runs.db"
    with serve_in_thread(str(path), store_timeout_s=0.2) as server:
        client = server.client()
        assert client.post("/api/sessions", json=thought(1)).status_code == 201
        with contextlib.closing(connect(path, 1)) as other:
            other.execute("BEGIN IMMEDIATE")
            deadline = time.monotonic() + 60
            while client.get("/healthz").status_code != 503:
                assert time.monotonic() < deadline
            # Looked at again meanwhile, more than once.
            for _ in range(10):
                assert client.get("/api/sessions").status_code == 200
                assert client.get("/api/runs").status_code == 200
                time.sleep(0.1)
            assert client.post("/api/sessions", json=thought(2)).status_code == 503
            other.execute("ROLLBACK")


def test_health_turns_red_while_the_store_hangs_and_green_when_it_answers_again() -> None:
    with serve_in_thread(store_timeout_s=0.2) as server:
        answering_again, store = threading.Event(), server.app.store

        def hang(work: Any) -> Any:
            async def hanging(*arguments: Any, **named: Any) -> Any:
                while not answering_again.is_set():
                    await asyncio.sleep(0.02)
                return await work(*arguments, **named)

            return hanging

        store.change, store.create_run = hang(store.change), hang(store.create_run)  # type: ignore[method-assign]
        call = {"name": "sequentialthinking", "arguments": thought(1)}
        puzzle = {"role": "user", "content": "Use 4, 9, 10 and 13 to make 24"}
        bodies: dict[str, Any] = {
            "/api/sessions": thought(1),
            "/v1/chat/completions": {"model": "tree_of_thoughts@offline", "messages": [puzzle]},
            "/mcp": {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call},
        }
        accepted = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
        pool, probe = ThreadPoolExecutor(), server.client()
        waiting = {
            path: pool.submit(server.client().post, path, json=body, headers=accepted)
            for path, body in bodies.items()
        }
        assert eventually(lambda: probe.get("/healthz").status_code == 503)
        assert probe.get("/api/sessions").status_code == 200
        refused = probe.post("/api/sessions", json=thought(1))
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "store_unavailable")
        assert refused.json()["error"]["retryable"]
        assert probe.get("/").status_code == 200
        for each in waiting.values():
            assert "store_unavailable" in each.result(5).text, "who waits for the store is told"
        assert waiting["/v1/chat/completions"].result().json()["error"]["type"] == "server_error"
        answering_again.set()
        assert eventually(lambda: probe.get("/healthz").status_code == 200)
        assert begin(probe, str(uuid.uuid4()))


def test_a43_the_end_comes_in_time_whatever_is_open() -> None:
    # `serve_in_thread` waits ten seconds for the end: longer than what is open may take, on a slow machine too.
    with serve_in_thread(drain_s=1) as server:
        wires = [Wire(server) for _ in range(5)]
        for wire in wires:
            wire.send(b"POST /api/sessions HTTP/1.1\r\n")
    for wire in wires:
        wire.__exit__()
