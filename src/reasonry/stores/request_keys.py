"""Keys of requests, so that a request that is sent again begins no second run."""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import ConflictError, StoreError
from ..records import KEY_LIFE_MS, RequestKey
from .checksums import row_checksum
from .sql import Tx

FORGOTTEN_AT_ONCE = 100

GET = "SELECT owner, key, digest, run, at_ms, checksum FROM request_key WHERE owner = ? AND key = ?"
PUT = "INSERT INTO request_key (owner, key, digest, run, at_ms, checksum) VALUES (?, ?, ?, ?, ?, ?)"
FORGET = """
DELETE FROM request_key WHERE (owner, key) IN (SELECT owner, key FROM request_key WHERE at_ms < ? LIMIT ?)
"""
FORGET_ONE = "DELETE FROM request_key WHERE owner = ? AND key = ? AND at_ms < ?"
DROP = "DELETE FROM request_key WHERE run = ?"
OF_RUN = "SELECT owner, key, digest, run, at_ms, checksum FROM request_key WHERE run = ? ORDER BY at_ms, key"
ALL = "SELECT owner, key, digest, run, at_ms, checksum FROM request_key"


def key_reused_error(key: str, run_id: str) -> ConflictError:
    """Return the error for a key that was used for another request."""
    return ConflictError(
        f"the key {key[:100]!r} was used for another request, which began run {run_id}; send this one with a new key",
        code="idempotency_conflict",
        run_id=run_id,
    )


def is_over(begun_at_ms: int, now_ms: int) -> bool:
    """Whether a key was used so long ago that it may be used for another request."""
    return now_ms - begun_at_ms > KEY_LIFE_MS


def find(tx: Tx, owner: str, key: RequestKey) -> tuple[int, bool] | None:
    """Return the key in the store of the run that a request has begun, and whether it was the same request.

    Raises:
        StoreError: `store_corrupt`: what is stored of it is not what was written.
    """
    found = tx.execute(GET, (owner, key.key)).fetchone()
    if found is None:
        return None
    if row_checksum("request_key", found[:-1]) != found[-1]:
        raise StoreError(
            f"the key {key.key[:100]!r} is damaged; send the request with another one", code="store_corrupt"
        )
    _, _, digest, run, at_ms, _ = found
    return None if is_over(at_ms, key.at_ms) else (run, digest == key.digest)


def put(tx: Tx, owner: str, key: RequestKey, run: int) -> None:
    """Keep the key of the request that began a run; forget some of those that are over."""
    tx.execute(FORGET, (key.at_ms - KEY_LIFE_MS, FORGOTTEN_AT_ONCE))
    tx.execute(FORGET_ONE, (owner, key.key, key.at_ms - KEY_LIFE_MS))
    values = (owner, key.key, key.digest, run, key.at_ms)
    tx.execute(PUT, (*values, row_checksum("request_key", values)))


def of_run(tx: Tx, run: int) -> tuple[RequestKey, ...]:
    """Return the keys of a run that are as they were written."""
    return tuple(
        RequestKey(values[1], values[2], values[4])
        for *values, checksum in tx.execute(OF_RUN, (run,))
        if row_checksum("request_key", values) == checksum
    )


def drop(tx: Tx, run: int) -> None:
    """Remove the keys of a run."""
    tx.execute(DROP, (run,))


def describe_damage(tx: Tx) -> Iterator[str]:
    """Yield what is said of each key that is not as it was written."""
    for *values, checksum in tx.execute(ALL):
        if row_checksum("request_key", values) != checksum:
            yield f"the key {str(values[1])[:100]!r} of a request is damaged"
