"""The server for a long time: how its memory grows under thoughts, completions, streams and searches.

    uv run python bench/server_soak.py [--minutes M] [--folder DIR]

Twenty minutes by default. The load, 20 thoughts and 20 completions a second and a look at the lists now and then, comes
from a second process. Resident memory is read every few seconds; the first three quarters are for it to settle.
Target: in the last quarter it grows by at most 5 % an hour, as the straight line through it has it; no errors.
"""

import argparse
import statistics
import sys
import tempfile
import threading
import time

from load import Measured, elsewhere, soak
from plain_server import PlainServer
from reasonry_server import reasonry
from server_completions import ANSWER, LATENCY_MS
from wire import progress

GROWTH_AN_HOUR = 0.05
PER_S = 20


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--folder", default=".", help="which disk the store is on")
    given = parser.parse_args()
    seconds = given.minutes * 60
    found, samples = list[Measured](), list[tuple[float, float]]()
    with (
        PlainServer(LATENCY_MS, ANSWER) as model,
        tempfile.TemporaryDirectory(dir=given.folder) as folder,
        reasonry(folder, REASONRY_MODEL=f"openai-compatible:{model.url}#test-model") as server,
    ):
        load = threading.Thread(
            target=lambda: found.append(elsewhere(soak, server.port, PER_S, seconds)), daemon=True
        )
        began = time.monotonic()
        load.start()
        while load.is_alive():
            load.join(min(5, seconds / 60))
            samples.append((time.monotonic() - began, server.rss_mib))
            if load.is_alive():
                progress("seconds", min(int(samples[-1][0]), int(seconds) - 1), int(seconds))
    if not found:
        print("the load broke off")
        return 1
    settled = [sample for sample in samples if sample[0] >= seconds * 3 / 4]
    per_s, _ = statistics.linear_regression(*zip(*settled, strict=True))
    growth = per_s * 3600 / statistics.mean(rss for _, rss in settled)
    row = found[0]
    print(
        f"{len(row.taken):,} requests, {row.errors} errors, p50 {row.ms(0.5):.1f} ms, p99 {row.ms(0.99):.1f} ms"
    )
    for part in (0, 0.25, 0.5, 0.75, 1):
        at = samples[min(int(part * len(samples)), len(samples) - 1)]
        print(f"after {at[0]:6.0f} s {at[1]:6.1f} MiB")
    print(f"growth in the last quarter: {growth:+.1%} an hour")
    good = growth <= GROWTH_AN_HOUR and not row.errors
    print("target met" if good else "TARGET MISSED")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
