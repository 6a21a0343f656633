"""The way to an OpenAI-compatible server: proxies, certificates, event loops, and what is not HTTP."""

from __future__ import annotations

import asyncio
import datetime
import gc
import ssl
import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from reasonry.errors import ModelError
from reasonry.models.http_session import tls_context
from reasonry.models.openai_compatible import OpenAICompatibleModel
from tests.servers import ModelServer

from .asking import KEY, question

pytestmark = pytest.mark.anyio

ANSWER = b'{"choices": [{"message": {"content": "over it"}, "finish_reason": "stop"}]}'


class Relay:
    """A server of raw bytes: keeps what it is sent first, and answers the same to everybody."""

    def __init__(self, reply: bytes, then: int | None = None) -> None:
        self.heads: list[str] = []
        self.port = 0
        self._reply, self._then = reply, then

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode("latin-1"))
            writer.write(self._reply)
            if self._then is not None:
                await _joined(reader, writer, self._then)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    @asynccontextmanager
    async def running(self, context: ssl.SSLContext | None = None) -> AsyncIterator[Relay]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=context)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield self


async def _joined(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int) -> None:
    inward, outward = await asyncio.open_connection("127.0.0.1", port)

    async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(65_536):
            sink.write(data)
            await sink.drain()
        sink.close()

    await asyncio.gather(pump(reader, outward), pump(inward, writer))


def http_reply(body: bytes, status: str = "200 OK", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Content-Type: application/json"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


@pytest.fixture
def certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ssl.SSLContext]:
    """A server's context, whose certificate is for `models.test`; clients do not trust it yet."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "models.test")])
    now = datetime.datetime.now(datetime.UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName(
                [x509.DNSName("models.test"), x509.IPAddress(ip_address("127.0.0.1"))]
            ),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = tmp_path / "server.pem"
    file.write_bytes(secret + built.public_bytes(serialization.Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    tls_context.cache_clear()
    yield context
    tls_context.cache_clear()


def _through(proxy: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy"):
        monkeypatch.setenv(name, f"http://user:p%40ss@127.0.0.1:{proxy.port}")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)


USER_AND_PASSWORD = "Proxy-Authorization: Basic dXNlcjpwQHNz"


async def _answer(url: str) -> str:
    model = OpenAICompatibleModel(url, "m", api_key=KEY)
    try:
        return (await model.answer(question())).text
    finally:
        await model.close()


async def test_plain_http_goes_through_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Relay(http_reply(ANSWER)).running() as proxy:
        _through(proxy, monkeypatch)
        assert await _answer("http://models.test:8080/v1") == "over it"
    assert proxy.heads[0].startswith("POST http://models.test:8080/v1/chat/completions ")
    assert USER_AND_PASSWORD in proxy.heads[0]


async def test_the_proxy_of_a_secure_connection_sees_no_key_and_the_server_no_proxy_password(
    certificate: ssl.SSLContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "server.pem"))
    async with Relay(http_reply(ANSWER)).running(certificate) as server:
        tunnel = Relay(b"HTTP/1.1 200 Connection established\r\n\r\n", server.port)
        async with tunnel.running() as proxy:
            _through(proxy, monkeypatch)
            assert await _answer("https://models.test/v1") == "over it"
    assert proxy.heads[0].startswith("CONNECT models.test:443 ")
    assert USER_AND_PASSWORD in proxy.heads[0]
    assert KEY not in proxy.heads[0]
    assert f"Authorization: Bearer {KEY}" in server.heads[0]
    assert "Proxy-Authorization" not in server.heads[0]


async def test_a_proxy_that_refuses_is_named_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Relay(http_reply(b"", "407 sk-CANARY0123456789abcdef")).running() as proxy:
        _through(proxy, monkeypatch)
        with pytest.raises(
            ModelError, match=r"the proxy 127\.0\.0\.1:\d+ refused to connect .*407"
        ) as caught:
            await _answer("https://models.test/v1")
    assert not caught.value.retryable
    assert not any(secret in caught.value.message for secret in ("p@ss", "p%40ss", KEY))


async def test_a_proxy_that_is_not_there_is_named_without_its_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with Relay(http_reply(ANSWER)).running() as proxy:
        _through(proxy, monkeypatch)
    with pytest.raises(ModelError, match=r"the proxy 127\.0\.0\.1:\d+ cannot be reached; check") as caught:
        await _answer("https://models.test/v1")
    assert caught.value.retryable
    assert not any(secret in caught.value.message for secret in ("p@ss", "p%40ss", KEY))


async def test_this_machine_is_never_asked_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Relay(http_reply(ANSWER)).running() as proxy:
        _through(proxy, monkeypatch)
        with ModelServer(replies=["direct"]) as server:
            assert await _answer(server.url) == "direct"
    assert not proxy.heads


async def test_a_certificate_nobody_vouches_for_ends_the_call_before_the_key_is_sent(
    certificate: ssl.SSLContext,
) -> None:
    async with Relay(http_reply(ANSWER)).running(certificate) as server:
        with pytest.raises(ModelError, match=r"no connection to .*: CERTIFICATE_VERIFY_FAILED") as caught:
            await _answer(f"https://127.0.0.1:{server.port}/v1")
    assert not caught.value.retryable
    assert not server.heads


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        b"HTTP/1.1 99999 No\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 10_000_000,
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9999999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"f" * 100_000,
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnope",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 4\r\n\r\nnope",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 2_000,
    ],
)
async def test_whatever_is_no_good_reply_is_a_model_error(reply: bytes) -> None:
    async with Relay(reply).running() as server:
        with pytest.raises(ModelError) as caught:
            await _answer(f"http://127.0.0.1:{server.port}/v1")
    assert caught.value.code == "provider_error"


async def test_no_connection_within_the_limit_is_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reasonry.models.http_session.CONNECT_TIMEOUT_S", 0.05)

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        with pytest.raises(ModelError, match="did not take a connection") as caught:
            await _answer(f"https://127.0.0.1:{port}/v1")
    assert (caught.value.code, caught.value.retryable) == ("provider_timeout", True)


@pytest.mark.parametrize("host", ["x" * 64 + ".test", "a..b"])
async def test_a_host_name_that_cannot_be_is_a_model_error(host: str) -> None:
    with pytest.raises(ModelError, match=r"the call to .* failed") as caught:
        await _answer(f"http://{host}/v1")
    assert not caught.value.retryable


async def test_no_cookie_is_kept_and_none_of_the_environment_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login someone password else\n")
    monkeypatch.setenv("NETRC", str(netrc))
    async with Relay(http_reply(ANSWER, Set_Cookie="a=b", Connection="close")).running() as server:
        model = OpenAICompatibleModel(f"http://127.0.0.1:{server.port}/v1", "m")
        await model.answer(question())
        await model.answer(question())
        await model.close()
    assert "cookie" not in "".join(server.heads).lower()
    assert "authorization" not in "".join(server.heads).lower()


async def test_a_long_prompt_is_sent_whole() -> None:
    with ModelServer() as server:
        model = OpenAICompatibleModel(server.url, "m")
        await model.answer(question("x" * 3_000_000))
        await model.close()
        assert len(server.bodies[0]["messages"][0]["content"]) == 3_000_000


def test_a_loop_that_ends_takes_its_connections_with_it(caplog: pytest.LogCaptureFixture) -> None:
    with ModelServer() as server, warnings.catch_warnings():
        warnings.simplefilter("error")
        model = OpenAICompatibleModel(server.url, "m")
        for _ in range(2):
            assert asyncio.run(model.answer(question())).text
            gc.collect()
    assert not caplog.records
