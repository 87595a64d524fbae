"""The platform under load. ``BENCH_PARTS`` selects parts, separated by commas."""

import importlib
import os

PARTS = ("load", "latency", "console", "blocks", "memory")


def main() -> None:
    for part in os.environ.get("BENCH_PARTS", ",".join(PARTS)).split(","):
        importlib.import_module(f"benchmarks.custody.{part}").main()
