"""Streams of events: the same events however they are cut, linear time, and limits nobody gets around."""

import asyncio
import time
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonry.errors import ModelError
from reasonry.models.http_session import EventLines
from tests.servers import Fault, ModelServer

from .asking import question


def read(pieces: list[bytes]) -> list[bytes]:
    lines = EventLines()
    return [data for piece in pieces for data in lines.data(piece)]


fragments = st.sampled_from(
    [b"data:", b"data: ", b'{"a": 1}', b": hm", b"event: x", b"\r", b"\n", b"\r\n", b"x"]
)


@given(st.lists(fragments, max_size=30), st.lists(st.integers(0, 60), max_size=6))
def test_events_are_the_same_however_the_stream_is_cut(parts: list[bytes], cuts: list[int]) -> None:
    raw = b"".join(parts)
    at = sorted({0, len(raw), *(cut for cut in cuts if cut < len(raw))})
    cut = [raw[start:end] for start, end in pairwise(at)]
    assert read(cut) == read([raw])
    whole = raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")[:-1]
    assert read([raw]) == [line[5:].strip() for line in whole if line[:5] == b"data:" and line[5:].strip()]


def test_time_is_linear_in_the_bytes_however_small_the_pieces() -> None:
    def took(size: int) -> float:
        lines, piece = EventLines(), b"x" * 100
        lines.data(b"data: ")
        began = time.process_time()
        for _ in range(size // len(piece)):
            lines.data(piece)
        assert len(lines.data(b"\n")[0]) == size
        return time.process_time() - began

    took(100_000)
    small, large = (min(took(size) for _ in range(3)) for size in (200_000, 1_600_000))
    assert large < small * 8 * 4


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["endless_line", "endless_comments", "endless_events", "huge"])
async def test_a_flood_leaves_the_loop_to_others_and_ends_soon(
    server: ModelServer, kind: str, model: Any
) -> None:
    server.reset(faults=[Fault(kind=kind)])
    longest = asyncio.create_task(_longest_hold())
    began = time.process_time()
    with pytest.raises(ModelError):
        await model.answer(question(timeout_s=30), lambda text: None)
    took = time.process_time() - began
    longest.cancel()
    assert took < 8
    assert await longest < 1


async def _longest_hold() -> float:
    """Return, once cancelled, the longest time for which the loop was held, in seconds of this thread's work."""
    longest = 0.0
    try:
        while True:
            before = time.thread_time()
            await asyncio.sleep(0)
            longest = max(longest, time.thread_time() - before)
    except asyncio.CancelledError:
        return longest
