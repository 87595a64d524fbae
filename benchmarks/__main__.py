"""``python -m benchmarks [NAME…]``: the figures of docs/understand/performance.md,
as ratios against a peer in the same run.
"""

import importlib
import sys

NAMES = (
    "inspection",
    "journal",
    "work",
    "devices",
    "idle",
    "daemon",
    "hours",
    "loopback",
    "custody",
    "files",
    "statements",
)


def main() -> int:
    wanted = sys.argv[1:] or NAMES
    unknown = [name for name in wanted if name not in NAMES]
    if unknown:
        print(f"no benchmark called {unknown[0]}; there are: {', '.join(NAMES)}", file=sys.stderr)
        return 2
    for name in wanted:
        importlib.import_module(f"benchmarks.{name}").main()
    return 0


if __name__ == "__main__":
    sys.exit(main())
