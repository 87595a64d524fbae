"""`make fuzz`, or `python -m fuzz`:

run [--seconds N] [NAME…]     fuzz each target for that long; new inputs stay in fuzz/found/
keep [NAME…]                  fold what was found into fuzz/corpus/: the smallest inputs that reach as far
replay NAME FILE…             check single inputs, for a debugger or a bisection; needs no fuzzer
"""

import argparse
import sys
from pathlib import Path

from fuzz.runs import keep, run
from fuzz.targets import TARGETS


def replay(name: str, files: list[str]) -> int:
    for file in files:
        TARGETS[name].check(Path(file).read_bytes())
        print(f"{file}: every promise was kept")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run")
    running.add_argument("--seconds", type=int, default=60)
    for part in (running, commands.add_parser("keep")):
        part.add_argument("names", nargs="*", metavar="NAME", help=", ".join(TARGETS))
    replaying = commands.add_parser("replay")
    replaying.add_argument("name", choices=TARGETS)
    replaying.add_argument("files", nargs="+")
    given = parser.parse_args()
    if given.command == "replay":
        return replay(given.name, given.files)
    unknown = sorted(set(given.names) - TARGETS.keys())
    if unknown:
        parser.error(f"no target is called {unknown[0]}; there are: {', '.join(TARGETS)}")
    names = given.names or list(TARGETS)
    return run(names, given.seconds) if given.command == "run" else keep(names)


if __name__ == "__main__":
    sys.exit(main())
