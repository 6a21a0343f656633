"""A server that was started is ended, reaped and let go of, whenever its user is cancelled."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import warnings

import anyio as _anyio  # noqa: F401 - loaded before anything is cancelled
import mcp.client.stdio as _stdio  # noqa: F401
import pytest

from reasonry.tools.mcp_transport import McpTarget, ServerProcess

STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"


async def _use(server: ServerProcess, seconds: float) -> None:
    async with server.connect():
        await asyncio.sleep(seconds)


async def _cancel_after(server: ServerProcess, delay_s: float, seconds: float) -> None:
    using = asyncio.create_task(_use(server, seconds))
    await asyncio.sleep(delay_s)
    using.cancel()
    await asyncio.wait([using])


async def _leave_after(server: ServerProcess, delay_s: float, seconds: float) -> None:
    """End the loop while the server is used: all tasks are cancelled at once, those that end it too."""
    using = asyncio.create_task(_use(server, seconds))
    while server.child is None:
        await asyncio.sleep(0.001)
    await asyncio.sleep(delay_s)
    assert not using.done()


@pytest.mark.parametrize("delay_s", [0.0, 0.002, 0.02])
@pytest.mark.parametrize("seconds", [60, 0.005], ids=["in-use", "being-ended"])
@pytest.mark.parametrize("end", [_cancel_after, _leave_after])
def test_no_process_is_left_behind(
    end: object, seconds: float, delay_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = ServerProcess(McpTarget(name="stubborn", command=sys.executable, args=("-S", "-c", STUBBORN)))
    monkeypatch.setattr("reasonry.tools.mcp_transport.GRACE_S", 0.05)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asyncio.run(end(server, delay_s, seconds))  # type: ignore[operator]
        gc.collect()
    if server.child is not None:
        with pytest.raises(ProcessLookupError):
            os.kill(server.child.pid, 0)
