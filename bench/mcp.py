"""Measure the MCP server beside the reference server, both driven by the same raw JSON-RPC client.

    uv run python bench/mcp.py                     everything; about three minutes
    uv run python bench/mcp.py latency start       only these parts: start, latency, throughput, long, kill, replies
    uv run python bench/mcp.py --json FILE         the numbers, too, as JSON

The reference is npm `@modelcontextprotocol/server-sequential-thinking`, installed once into a folder under the system's
temporary one; without npm only our own rows are measured. Standard error of every server goes to /dev/null.
Targets, whose miss is exit code 1: the tokens of the replies of a conversation, and for a thought in memory the p50 of
the reference over 1,000 calls.
"""

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

from tests.conversations import CONVERSATIONS, reference_replies, tokens

REFERENCE = "@modelcontextprotocol/server-sequential-thinking"
TEXT = "A thought of five hundred characters, as an agent writes them. " * 8
TEXT = TEXT[:500]
INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}
WHOLLY_SDK = """
import asyncio
from reasonry.stores import open_store
from reasonry.surfaces.mcp.http_server import sdk_server
from reasonry.surfaces.mcp.mcp_catalog import app_server
from reasonry.surfaces.mcp.tools import CallContext
from reasonry.surfaces.mcp.run_tasks import RunTasks
from reasonry.app.app import App
async def main():
    from mcp.server.stdio import stdio_server
    app = App(open_store("memory"), environ={})
    ours = app_server(RunTasks(app.for_agents()), app.sessions())
    server = sdk_server(lambda _: ours, lambda _: CallContext(), has_tasks=False)
    async with stdio_server() as (reader, writer):
        await server.run(reader, writer, server.create_initialization_options())
asyncio.run(main())
"""


class Client:
    """One server process and the pipes to it."""

    def __init__(self, command: list[str], store: str) -> None:
        env = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        env |= {"REASONRY_STORE": store, "REASONRY_MAX_THOUGHTS": "100000"}
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=env, bufsize=0
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._out = self.process.stdin.fileno()
        self._in = os.fdopen(os.dup(self.process.stdout.fileno()), "rb", buffering=1 << 16)
        self._id = 0

    def greet(self) -> None:
        """Go through the handshake."""
        self.ask("initialize", INITIALIZE)
        os.write(self._out, b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')

    def frame(self, method: str, params: dict[str, Any]) -> bytes:
        """Return the next request as a line."""
        self._id += 1
        return (
            json.dumps({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}).encode()
            + b"\n"
        )

    def send(self, line: bytes) -> None:
        """Send a line."""
        while line:
            line = line[os.write(self._out, line) :]

    def hear(self) -> bytes:
        """Return the next line of the server."""
        return self._in.readline()

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request and return the answer."""
        self.send(self.frame(method, params))
        return json.loads(self.hear())

    def thought(self, number: int, **more: Any) -> bytes:
        """Return the line of a call with a thought."""
        arguments = {
            # A thought that repeats another is told so, which is not what is measured.
            "thought": f"{number}. {TEXT}"[:500],
            "nextThoughtNeeded": True,
            "thoughtNumber": number,
            "totalThoughts": 1000,
        }
        return self.frame("tools/call", {"name": "sequentialthinking", "arguments": {**arguments, **more}})

    def timed(self, line: bytes) -> tuple[float, bytes]:
        """Return how long a call took, in µs, and its answer."""
        began = time.perf_counter()
        self.send(line)
        answer = self.hear()
        return (time.perf_counter() - began) * 1e6, answer

    def rss(self) -> float:
        """Return the server's resident memory in MiB."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def close(self) -> None:
        """End the server and give the pipes back."""
        self.process.kill()
        self.process.wait()
        self._in.close()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


class Server:
    """A row of the tables."""

    def __init__(self, name: str, command: list[str], *, durable: bool = False) -> None:
        self.name, self.command, self.durable = name, command, durable

    @contextmanager
    def open(self, folder: Path, *, greet: bool = True) -> Iterator[Client]:
        """Start the server, with a store of its own."""
        folder.mkdir(parents=True, exist_ok=True)
        store = str(folder / f"{time.monotonic_ns()}.db") if self.durable else "memory"
        client = Client(self.command, store)
        try:
            if greet:
                client.greet()
            yield client
        finally:
            client.close()


def say(text: str) -> None:
    """Show progress."""
    print(text, file=sys.stderr, flush=True)


def reference() -> list[Server]:
    """Return the reference's rows, having installed it if need be."""
    npm = shutil.which("npm")
    if npm is None:
        say("no npm here: only our own rows")
        return []
    folder = Path(tempfile.gettempdir()) / "reasonry-bench-reference"
    script = folder / "node_modules" / REFERENCE / "dist" / "index.js"
    if not script.exists():
        say(f"installing {REFERENCE} into {folder}")
        folder.mkdir(exist_ok=True)
        (folder / "package.json").write_text("{}")
        subprocess.run([npm, "install", "--no-audit", REFERENCE], cwd=folder, check=True, capture_output=True)
    npx = ["npx", "--prefix", str(folder), "--no-install", "mcp-server-sequential-thinking"]
    return [Server("reference", ["node", str(script)]), Server("reference via npx", npx)]


def ours() -> list[Server]:
    """Return our rows."""
    command = [str(Path(sys.executable).parent / "reasonry"), "mcp"]
    return [
        Server("reasonry, memory", command),
        Server("reasonry, SQLite", command, durable=True),
        Server("reasonry, memory, wholly by the SDK", [sys.executable, "-c", WHOLLY_SDK]),
    ]


def start(servers: list[Server], folder: Path) -> list[dict[str, Any]]:
    """Measure the time from spawning to the answer to `tools/list`."""
    rows = []
    for server in servers:
        times = []
        for _ in range(8):
            began = time.perf_counter()
            with server.open(folder) as client:
                client.ask("tools/list", {})
                times.append((time.perf_counter() - began) * 1e3)
        # The first run writes bytecode.
        rows.append(
            {"server": server.name, "median_ms": statistics.median(times[1:]), "max_ms": max(times[1:])}
        )
        say(f"start: {server.name}: {rows[-1]['median_ms']:.0f} ms")
    return rows


def latency(servers: list[Server], folder: Path) -> list[dict[str, Any]]:
    """Measure calls one after another: the first 20 of fresh processes, taken in turns, then up to the 1,000th."""
    firsts: dict[str, list[float]] = {server.name: [] for server in servers}
    disk = []
    for turn in range(9):
        for server in servers:
            with server.open(folder) as client:
                times = [client.timed(client.thought(number))[0] for number in range(1, 21)]
            firsts[server.name].append(statistics.median(times))
        disk.append(fdatasync_us(folder))
        say(f"latency: turn {turn + 1} of 9")
    rows = []
    for server in servers:
        with server.open(folder) as client:
            times = [client.timed(client.thought(number))[0] for number in range(1, 1001)]
        row = {"server": server.name, "first_20_us": statistics.median(firsts[server.name])}
        row |= {"first_20_best_us": min(firsts[server.name]), "p50_us": statistics.median(times)}
        row |= {"p50_101_200_us": statistics.median(times[100:200])}
        row |= {"p50_901_1000_us": statistics.median(times[900:]), "p99_us": sorted(times)[990]}
        rows.append(row)
        say(f"latency: {server.name}: first 20 {row['first_20_us']:.0f} µs, p50 {row['p50_us']:.0f} µs")
    by_name = {row["server"]: row for row in rows}
    if "reference" in by_name:
        own = by_name["reasonry, memory"]
        ratio = own["p50_us"] / by_name["reference"]["p50_us"]
        own["missed"] = ratio > 1
        say(f"latency: p50 in memory is {ratio:.2f} of the reference's{': TARGET MISSED' * own['missed']}")
    bare = {"first_20_us": statistics.median(disk), "first_20_best_us": min(disk)}
    return [*rows, dict.fromkeys(rows[0], "") | {"server": "(the disk: writing and syncing 12 KB)"} | bare]


def fdatasync_us(folder: Path) -> float:
    """Return the median time, in µs, that the disk takes for what one thought needs."""
    times = []
    descriptor = os.open(folder / "disk", os.O_CREAT | os.O_RDWR)
    try:
        for index in range(20):
            began = time.perf_counter()
            os.pwrite(descriptor, b"x" * 12_360, index * 12_360)
            os.fdatasync(descriptor)
            times.append((time.perf_counter() - began) * 1e6)
    finally:
        os.close(descriptor)
    return statistics.median(times)


def throughput(servers: list[Server], folder: Path) -> list[dict[str, Any]]:
    """Measure calls a second with 32 in flight."""
    rows, total, flight = [], 4000, 32
    for server in servers:
        with server.open(folder) as client:
            began, sent = time.perf_counter(), 0
            for heard in range(total):
                while sent < total and sent - heard < flight:
                    sent += 1
                    client.send(client.thought(sent))
                client.hear()
            rate = total / (time.perf_counter() - began)
        rows.append({"server": server.name, "calls_per_s": rate})
        say(f"throughput: {server.name}: {rate:.0f} calls/s")
    return rows


def long(servers: list[Server], folder: Path) -> list[dict[str, Any]]:
    """Measure 10,000 thoughts of 500 characters in ten sessions of one process."""
    rows = []
    for server in servers:
        with server.open(folder) as client:
            ids = [f"00000000-0000-7000-8000-00000000000{n}" for n in range(10)]
            known: dict[str, str] = {}
            rss, times, sizes = [client.rss()], [], []
            for count in range(1, 10_001):
                key = ids[count % 10]
                took, answer = client.timed(client.thought((count + 9) // 10, sessionId=known.get(key, key)))
                known.setdefault(key, _session_of(answer, key))
                times.append(took)
                sizes.append(len(answer))
                if count in (1_000, 10_000):
                    rss.append(client.rss())
        row = {"rss_start_mib": rss[0], "rss_1000_mib": rss[1], "rss_10000_mib": rss[2]}
        row |= {"p50_1001_2000_us": statistics.median(times[1000:2000])}
        row |= {"p50_9001_10000_us": statistics.median(times[9000:])}
        row |= {"reply_1000_bytes": sizes[999], "reply_10000_bytes": sizes[-1]}
        rows.append({"server": server.name, **row})
        say(f"long: {server.name}: RSS {rss[0]:.0f}, {rss[1]:.0f}, {rss[2]:.0f} MiB")
    return rows


def _session_of(answer: bytes, key: str) -> str:
    document = json.loads(answer).get("result", {}).get("structuredContent", {})
    return document.get("sessionId", key)


def kill(servers: list[Server], folder: Path) -> list[dict[str, Any]]:
    """Kill -9 after an acknowledged thought, 200 times, and count what is missing."""
    rows = []
    for server in (one for one in servers if one.durable):
        store = str(folder / "killed.db")
        session, acknowledged, lost = None, 0, 0
        for round in range(200):
            client = Client(server.command, store)
            client.greet()
            for _ in range(1 + round % 4):
                more = {} if session is None else {"sessionId": session}
                answer = json.loads(client.timed(client.thought(acknowledged + 1, **more))[1])
                document = answer["result"]["structuredContent"]
                lost += max(0, acknowledged + 1 - document["thoughtHistoryLength"])
                session, acknowledged = document["sessionId"], document["thoughtHistoryLength"]
            client.send(client.thought(acknowledged + 1, sessionId=session))
            client.process.send_signal(signal.SIGKILL)
            client.close()
            if round % 50 == 49:
                say(f"kill: {round + 1} rounds, {acknowledged} thoughts kept, {lost} lost")
        rows.append({"server": server.name, "rounds": 200, "thoughts": acknowledged, "lost": lost})
    return rows


def replies(servers: list[Server], folder: Path) -> list[dict[str, Any]]:
    """Count the tokens of all replies to a conversation (characters / 4 of the text) with 350 characters a thought."""
    rows = []
    for conversation in CONVERSATIONS:
        row: dict[str, Any] = {"replies to": conversation.name, "target": conversation.target}
        row["reference's form"] = tokens(reference_replies(conversation.calls))
        for server in servers:
            with server.open(folder) as client:
                row[server.name] = tokens(_texts(client, conversation.calls))
        row["missed"] = ", ".join(
            server.name
            for server in servers
            if "reference" not in server.name and row[server.name] > conversation.target
        )
        rows.append(row)
        say(f"replies: {conversation.name}: missed by {row['missed'] or 'none'}")
    return rows


def _texts(client: Client, calls: list[dict[str, Any]]) -> list[str]:
    texts, session = list[str](), dict[str, Any]()
    for call in calls:
        asked = {"name": "sequentialthinking", "arguments": {**call, **session}}
        answer = client.ask("tools/call", asked)["result"]
        if answer.get("isError"):
            raise SystemExit(f"refused: {answer['content'][0]['text']}")
        texts.append(answer["content"][0]["text"])
        # Where nothing binds, as over the SDK, the id is passed on; the reference has none.
        session = {name: answer["structuredContent"][name] for name in ("sessionId",) if name in texts[-1]}
    return texts


PARTS: dict[str, Callable[[list[Server], Path], list[dict[str, Any]]]] = {
    "start": start,
    "latency": latency,
    "throughput": throughput,
    "long": long,
    "kill": kill,
    "replies": replies,
}


def table(rows: list[dict[str, Any]]) -> str:
    """Return rows as a Markdown table."""
    if not rows:
        return "(none)"
    heads = list(rows[0])
    cells = [
        [f"{row[head]:.1f}" if isinstance(row[head], float) else str(row[head]) for head in heads]
        for row in rows
    ]
    lines = [heads, ["---"] + ["---:"] * (len(heads) - 1), *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> int:
    """Measure what is asked for and print the tables; return 1 if a target was missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="default: all")
    parser.add_argument("--json", metavar="FILE", type=Path)
    asked = parser.parse_args()
    servers = reference() + ours()
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="reasonry-bench-") as folder:
        for part in asked.parts or PARTS:
            used = [one for one in servers if part == "start" or "npx" not in one.name]
            found[part] = PARTS[part](used, Path(folder) / part)
            print(f"\n## {part}: {(PARTS[part].__doc__ or '').strip()}\n\n{table(found[part])}")
    if asked.json is not None:
        asked.json.write_text(json.dumps(found, indent=2) + "\n")
    return int(any(row.get("missed") for part in ("replies", "latency") for row in found.get(part, ())))


if __name__ == "__main__":
    sys.exit(main())
