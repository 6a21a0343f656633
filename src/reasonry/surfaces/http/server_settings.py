"""The settings of the server, which its operator chooses."""

import hashlib
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from msgspec import Struct

from ...errors import UsageError
from ...models.http_session import is_loopback
from ...supervisor import CONCURRENCY, MAX_QUEUED, MAX_RUNS
from ...system.processes import read_regular_file

OPERATOR = ""
"""The principal of all requests if no tokens are set. Other surfaces, such as the CLI, also act as this owner."""
OPERATOR_NAME = "operator"
"""The name that stands for the operator in a `PRINCIPAL=TOKEN` entry."""

TOKENS = "REASONRY_TOKENS"
ALLOWED_HOSTS = "REASONRY_ALLOWED_HOSTS"
USD_A_DAY = "REASONRY_USD_A_DAY"

LEAST_TOKEN_CHARS = 16
MAX_TOKENS_FILE_BYTES = 1 << 20
EVERYONE = "*"

_PRINCIPAL = re.compile(r"\w[\w.@-]{0,63}")
_HOST = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9_](?:[a-z0-9_.-]{0,253}[a-z0-9_])?\.?)(?::[0-9]{1,5})?")


class ServerSettings(Struct, frozen=True, kw_only=True):
    """The settings of a server.

    Attributes:
        tokens: Maps the SHA-256 digest of each token to its principal. If empty, every client is the operator.
        allowed_hosts: Host names of the server besides `localhost`, `127.0.0.1` and `[::1]`.
        usd_a_day: Maps each principal to the daily limit in US dollars for its runs. `EVERYONE` means all others.
        requests_per_minute: How many requests each principal may send per minute. None means no limit.
        concurrency: How many jobs the server drives at the same time. With 0, the server drives no jobs.
        max_queued: How many jobs may wait.
        max_connections: How many connections may be open. Another connection replaces the longest waiting connection.
        max_in_flight: How many requests may be in progress. Each of several principals may have at most half of them.
        max_streams: How many event streams each principal may have open.
        request_timeout_s: Seconds within which a whole request must arrive.
        send_timeout_s: Seconds that the server waits for a client that does not read its reply.
        store_timeout_s: Seconds without an answer from the store, after which the store counts as unavailable.
        drain_s: Seconds that pending work may take to finish when the server ends.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    tokens: Mapping[bytes, str] = {}
    allowed_hosts: frozenset[str] = frozenset()
    usd_a_day: Mapping[str, float] = {}
    requests_per_minute: int | None = None
    max_runs: int = MAX_RUNS
    concurrency: int = CONCURRENCY
    max_queued: int = MAX_QUEUED
    max_connections: int = 1_024
    max_in_flight: int = 512
    max_streams: int = 100
    max_body_bytes: int = 4 << 20
    request_timeout_s: float = 20.0
    idle_timeout_s: float = 60.0
    send_timeout_s: float = 60.0
    store_timeout_s: float = 3.0
    drain_s: float = 3.0

    def check(self) -> None:
        """Raise UsageError if other machines can reach the server and no token is set."""
        for option, hosts in (("host", (self.host,)), ("allowed_hosts", sorted(self.allowed_hosts))):
            for host in hosts:
                if not (self.tokens or is_loopback(host)):
                    needed = f"tokens must be set: {TOKENS} or --tokens-file"
                    raise UsageError(f"{host} can be reached from other machines, so {needed}", option=option)

    def usd_a_day_of(self, principal: str) -> float | None:
        """Return a principal's daily limit in dollars, or None for no limit."""
        return self.usd_a_day.get(principal, self.usd_a_day.get(EVERYONE))


# -- reading


def read_tokens(text: str, source: str) -> dict[bytes, str]:
    """Read `PRINCIPAL=TOKEN` entries, separated by commas or newlines. Map the digest of each token to its principal.

    Args:
        source: The name of the setting or file, for error messages. No error message shows a token.

    Raises:
        UsageError: There are no entries, an entry is malformed, or a token is too short or belongs to two principals.
    """
    tokens: dict[bytes, str] = {}
    fault = partial(UsageError, option=source)
    for number, entry in enumerate(_entries(text), 1):
        name, _, token = (part.strip() for part in entry.partition("="))
        # An HTTP header can carry only these characters.
        is_sendable = token.isascii() and token.isprintable() and " " not in token
        if not (token and is_sendable and _PRINCIPAL.fullmatch(name)):
            raise fault(f"{source}: entry {number} is not PRINCIPAL=TOKEN")
        if len(token) < LEAST_TOKEN_CHARS:
            make = 'python -c "import secrets; print(secrets.token_urlsafe(32))"'
            short = f"the token of {name} has fewer than {LEAST_TOKEN_CHARS} characters"
            raise fault(f"{source}: {short}; make one with: {make}")
        digest = hashlib.sha256(token.encode()).digest()
        principal = OPERATOR if name == OPERATOR_NAME else name
        if tokens.setdefault(digest, principal) != principal:
            raise fault(f"{source}: two principals have the same token")
    if not tokens:
        raise fault(f"{source} is set and has no PRINCIPAL=TOKEN: add an entry, or do not set it")
    return tokens


def read_tokens_file(file: Path) -> dict[bytes, str]:
    """Read a file of `PRINCIPAL=TOKEN` lines, or raise UsageError. Lines that begin with # are comments."""
    data = read_regular_file(file, MAX_TOKENS_FILE_BYTES, label="tokens file", option="tokens_file")
    text = data.decode("utf-8", "replace")
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    return read_tokens("\n".join(lines), "tokens-file")


def read_host(text: str) -> str | None:
    """Return the lower-case host in `HOST` or `HOST:PORT`, without a final dot. None if `text` has neither form."""
    found = _HOST.fullmatch(text.lower())
    return found and found[1].rstrip(".")


def read_allowed_hosts(text: str) -> frozenset[str]:
    """Read comma-separated host names. If an entry is not a host name without a port, raise UsageError."""
    hosts = [entry.lower() for entry in _entries(text)]
    for host in hosts:
        if read_host(host) != host:
            raise UsageError(
                f"{ALLOWED_HOSTS} takes names of hosts without ports, got {host[:60]!r}", option=ALLOWED_HOSTS
            )
    return frozenset(hosts)


def read_usd_a_day(text: str) -> dict[str, float]:
    """Read comma-separated limits: `PRINCIPAL=USD`, or `USD` for all others. If an entry is wrong, raise UsageError."""
    limits: dict[str, float] = {}
    for entry in _entries(text):
        name, _, number = (part.strip() for part in entry.rpartition("="))
        if not number.replace(".", "", 1).isdecimal() or not (name == "" or _PRINCIPAL.fullmatch(name)):
            raise UsageError(f"{USD_A_DAY} takes USD or PRINCIPAL=USD, got {entry[:60]!r}", option=USD_A_DAY)
        limits[OPERATOR if name == OPERATOR_NAME else name or EVERYONE] = float(number)
    return limits


def _entries(text: str) -> list[str]:
    return [entry.strip() for entry in text.replace("\n", ",").split(",") if entry.strip()]
