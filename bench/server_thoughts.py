"""The server: durable thoughts over HTTP with 16 clients, beside a bare route that keeps nothing.

    uv run python bench/server_thoughts.py [--seconds S] [--clients N] [--folder DIR]

Each client adds thoughts of 300 characters to a session of its own and waits for each reply, which is sent after the
thought is on disk. The load comes from a second process. Target: 1,500 thoughts a second, p99 at most 50 ms. A disk
that stalls shows in the p99, so what the disk does by itself in the same seconds is printed too.
"""

import argparse
import sys
import tempfile

from disk import Disk
from load import elsewhere, think_in_turn
from reasonry_server import bare, reasonry

PER_S, P99_MS = 1_500, 50


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--folder", default=".", help="which disk the store is on")
    given = parser.parse_args()
    with bare() as floor:
        elsewhere(think_in_turn, floor.port, given.clients, 1, "/echo")
        cpu_s = floor.cpu_s
        at_floor = elsewhere(think_in_turn, floor.port, given.clients, given.seconds / 2, "/echo")
        floor_us = (floor.cpu_s - cpu_s) / len(at_floor.taken) * 1e6
    with tempfile.TemporaryDirectory(dir=given.folder) as folder, reasonry(folder) as server:
        elsewhere(think_in_turn, server.port, given.clients, 1)
        cpu_s = server.cpu_s
        with Disk(folder) as disk:
            found = elsewhere(think_in_turn, server.port, given.clients, given.seconds)
        us, rss = (server.cpu_s - cpu_s) / len(found.taken) * 1e6, server.rss_mib
    print(f"{'':22}{'per s':>9}{'p50 ms':>9}{'p99 ms':>9}{'errors':>8}")
    for name, row in (("bare route", at_floor), ("durable thoughts", found)):
        print(f"{name:22}{row.served_per_s:9,.0f}{row.ms(0.5):9.2f}{row.ms(0.99):9.2f}{row.errors:8}")
    print(f"{us:.0f} µs of processor time a thought (bare route: {floor_us:.0f} µs), {rss:.0f} MiB")
    print(disk)
    good = found.served_per_s >= PER_S and found.ms(0.99) <= P99_MS and not found.errors
    print("target met" if good else "TARGET MISSED")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
