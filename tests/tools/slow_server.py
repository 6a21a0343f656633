"""A tool server that takes its time, over raw JSON-RPC: `python slow_server.py PID_FILE HOW SECONDS`.

HOW is `opens` (answers nothing for so long), `closes` (stays on for so long, whoever asks it to end) or `well`.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

LISTED = [{"name": "climate", "description": "Says how it rains.", "inputSchema": {"type": "object"}}]


def answer(method: str, params: dict[str, object]) -> dict[str, object]:
    """Return the answer to a request."""
    if method == "initialize":
        about = {"name": "slow", "version": "1"}
        version = params["protocolVersion"]
        return {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}}
    if method == "tools/list":
        return {"result": {"tools": LISTED}}
    return {"error": {"code": -32601, "message": "Method not found"}}


def main(pid_file: str, how: str, seconds: float) -> None:
    """Serve until there are no more requests."""
    if how == "closes":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Path(pid_file).write_text(str(os.getpid()))
    if how == "opens":
        time.sleep(seconds)
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            reply = answer(message["method"], message.get("params") or {})
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}) + "\n")
            sys.stdout.flush()
    if how == "closes":
        time.sleep(seconds)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
