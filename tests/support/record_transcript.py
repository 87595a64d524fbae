"""Prints what a virtual device shows and does, as lines of a transcript: `python -m
tests.support.record_transcript NAME [SITUATION…]`.

The evidence is "unknown" until the lines are compared with the maker's source or firmware.
"""

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.conformance import rigs
from tests.conformance.situations import SITUATIONS, play
from tests.conformance.transcripts import ABSENT, Screen, Transcript, load

_SHORT = 5


def _lines(name: str, transcript: Transcript) -> Iterator[str]:
    yield f"[situation.{name}]"
    with rigs.short_folder() as folder:
        played = asyncio.run(play(transcript, name, Path(folder)))
    if played is None:
        yield f'outcome = "{ABSENT}"'
        return
    yield 'evidence = "unknown"'
    ends, values = played
    outcomes = list(dict.fromkeys(end.outcome for end in ends))
    yield f"outcome = {json.dumps(outcomes if len(outcomes) > 1 else outcomes[0])}"
    if (screens := ends[-1].screens) is not None:
        yield "screens = [" if screens else "screens = []"
        yield from (f"  {_screen(screen, values)}," for screen in screens)
        if screens:
            yield "]"


def _screen(screen: Screen, values: dict[str, str]) -> str:
    lines = json.dumps([_with_names(line, values) for line in screen.lines], ensure_ascii=False)
    words = [f'no = "{screen.no}"'] * (screen.no != "no") + [f'yes = "{screen.yes}"'] * (screen.yes != "yes")
    notice = ["notice = true"] * screen.notice
    return "{ " + ", ".join([f"lines = {lines}", *words, *notice]) + " }"


def _with_names(line: str, values: dict[str, str]) -> str:
    line = line.replace("{", "{{").replace("}", "}}")
    # Short values are not replaced: they occur in other words.
    named = [(name, value) for name, value in values.items() if len(value) > _SHORT or line == value]
    for name, value in sorted(named, key=lambda item: -len(item[1])):
        line = line.replace(value, f"{{{name}}}")
    return line


def main(name: str, *situations: str) -> None:
    transcript = load(name)
    for situation in situations or SITUATIONS:
        sys.stdout.write("\n".join(_lines(situation, transcript)) + "\n\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
