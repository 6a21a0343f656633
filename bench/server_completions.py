"""The server's `/v1` over a model that takes 60 ms: at 200 requests a second, as streams, and at three times too much.

    uv run python bench/server_completions.py [--seconds S] [--per-s N] [--folder DIR]

Each completion is a run of `chain_of_thought`: one question to the model, kept durably. The load comes from a second
process, the model from a third. Beside it a bare route of the same HTTP server hands the model's answer on and keeps
nothing. A disk that stalls shows in the p99, so what the disk does by itself in the same seconds is printed too.
Targets:

- 200 requests a second: p99 at most 250 ms, no errors, at most 300 MiB;
- the first text of a stream at most 10 ms after the model's;
- three times what it can do: at least 80 % of that is done, the rest refused (429 or 503) with p99 at most 200 ms. What
  it can do is measured with requests that come as they do in the flood, each when it is due. (Clients that ask again
  once they are answered soon ask in step, and as many at the same point of their run cost less: that is shown too.) It
  changes from second to second on a machine that others use, so both are measured in turns, three times; the medians
  count.
"""

import argparse
import statistics
import sys
import tempfile
from urllib.parse import urlsplit

from disk import Disk
from load import Measured, ask_at_rate, ask_in_turn, elsewhere
from plain_server import PlainServer
from reasonry_server import ServerOnPort, bare, reasonry

LATENCY_MS = 60
ANSWER = '{"steps": ["4 and 9 make 13."], "answer": "13", "done": true}'
PATH = "/v1/chat/completions"
QUESTION = [{"role": "user", "content": "What is 4 + 9?"}]
BODY = {"model": "chain_of_thought", "messages": QUESTION}
STREAMED = {**BODY, "stream": True}
PLAIN = {"model": "test-model", "messages": QUESTION}

ROUNDS = 3
P99_MS, RSS_MIB, OVER_MODEL_MS = 250, 300, 10
SERVED_PART, REFUSED_P99_MS = 0.8, 200


def row(name: str, found: Measured) -> None:
    print(
        f"{name:34}{found.served_per_s:8,.0f}{found.ms(0.5):9.1f}{found.ms(0.99):9.1f}{found.errors:8}",
        flush=True,
    )


def is_refusal(code: int) -> bool:
    return code in (429, 503)


def is_good_when_flooded(server: ServerOnPort, seconds: float) -> bool:
    """Measure what the server does when it is asked for three times as much as it can, in turns with that."""
    parts, floods = list[float](), list[Measured]()
    for _ in range(ROUNDS):
        in_step = elsewhere(ask_in_turn, server.port, 64, seconds / 4, PATH, BODY)
        row("/v1, 64 clients in turn", in_step)
        full = elsewhere(ask_at_rate, server.port, in_step.served_per_s, seconds / 2, PATH, BODY)
        row("/v1, all it can do", full)
        flood = elsewhere(ask_at_rate, server.port, 3 * full.served_per_s, seconds / 2, PATH, BODY)
        row("/v1, three times that", flood)
        parts.append(flood.served_per_s / full.served_per_s)
        floods.append(flood)
    refused = sum(flood.count(is_refusal) for flood in floods)
    broken = sum(flood.errors for flood in floods) - refused
    p99 = statistics.median(flood.ms(0.99, status=is_refusal) for flood in floods)
    print(
        f"  {', '.join(f'{part:.0%}' for part in parts)} of it done, {refused} refused (p99 {p99:.0f} ms), "
        f"{broken} broken, {server.rss_mib:.0f} MiB"
    )
    return statistics.median(parts) >= SERVED_PART and not broken and p99 <= REFUSED_P99_MS


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--per-s", type=float, default=200)
    parser.add_argument("--folder", default=".", help="which disk the store is on")
    given = parser.parse_args()
    seconds, per_s, missed = given.seconds, given.per_s, list[str]()
    print(f"{'':34}{'per s':>8}{'p50 ms':>9}{'p99 ms':>9}{'errors':>8}")
    with PlainServer(LATENCY_MS, ANSWER) as model:
        model_port = urlsplit(model.url).port or 0
        alone = elsewhere(ask_in_turn, model_port, 1, 2, PATH, {**PLAIN, "stream": True})
        with bare(model.url) as floor:
            elsewhere(ask_in_turn, floor.port, 4, 1, "/hand_on", PLAIN)
            cpu_s = floor.cpu_s
            plain = elsewhere(ask_at_rate, floor.port, per_s, seconds / 2, "/hand_on", PLAIN)
            row("bare route, at the rate", plain)
            print(
                f"  {(floor.cpu_s - cpu_s) / len(plain.taken) * 1e6:.0f} µs of processor time a request",
                flush=True,
            )
        with (
            tempfile.TemporaryDirectory(dir=given.folder) as folder,
            reasonry(folder, REASONRY_MODEL=f"openai-compatible:{model.url}#test-model") as server,
        ):
            elsewhere(ask_in_turn, server.port, 4, 1, PATH, BODY)
            cpu_s = server.cpu_s
            with Disk(folder) as disk:
                steady = elsewhere(ask_at_rate, server.port, per_s, seconds, PATH, BODY)
            row("/v1, at the rate", steady)
            us = (server.cpu_s - cpu_s) / len(steady.taken) * 1e6
            if not (steady.ms(0.99) <= P99_MS and not steady.errors and server.rss_mib <= RSS_MIB):
                missed.append("at the rate")
            print(f"  {us:.0f} µs of processor time a completion, {server.rss_mib:.0f} MiB")
            print(f"  {disk}", flush=True)
            streams = elsewhere(ask_in_turn, server.port, 1, 3, PATH, STREAMED)
            over = statistics.median(streams.first_texts_ms) - statistics.median(alone.first_texts_ms)
            print(f"  first text of a stream: {over:.1f} ms after the model's", flush=True)
            if not over <= OVER_MODEL_MS:
                missed.append("first text")
            if not is_good_when_flooded(server, seconds):
                missed.append("overload")
    print(f"TARGET MISSED: {', '.join(missed)}" if missed else "targets met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
