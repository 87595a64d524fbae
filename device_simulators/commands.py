"""What the operator of a running virtual device may say, a line at a time: words for a person, JSON for a program."""

import json
from dataclasses import dataclass
from enum import StrEnum

from device_simulators.errors import InvalidCommand
from device_simulators.faults import Faults


class Verb(StrEnum):
    YES = "yes"
    NO = "no"
    LOCK = "lock"
    UNLOCK = "unlock"
    UNPLUG = "unplug"
    PLUG = "plug"
    FAULTS = "faults"
    """JSON only: `{"faults": {…}}`, see `Faults.parse`; `{}` ends them. What has stalled already wants to be plugged in again."""
    QUIT = "quit"


@dataclass(frozen=True)
class Command:
    """`prompt` is the number of the prompt meant, None for the one on the screen."""

    verb: Verb
    prompt: int | None = None
    faults: Faults | None = None


_ANSWERS = {Verb.YES, Verb.NO}
_SHORT = {"y": Verb.YES, "n": Verb.NO, "q": Verb.QUIT}


def parse_command(line: str) -> Command:
    """One line: `yes`, `no 3`, `lock`, … or `{"yes": 3}`, `{"lock": true}`, `{"faults": {"stall_at": "sign"}}`.

    :raises InvalidCommand: anything else.
    :raises InvalidFaults: a fault that does not exist.
    """
    line = line.strip()
    return _parse_json(line) if line.startswith("{") else _parse_words(line)


def _parse_words(line: str) -> Command:
    words = line.lower().split()
    if not 1 <= len(words) <= 2:
        raise InvalidCommand(f"this is no command: {line!r}")
    verb = _SHORT.get(words[0]) or _verb(words[0])
    if len(words) == 1 and verb is not Verb.FAULTS:
        return Command(verb)
    if verb not in _ANSWERS or not words[1].isascii() or not words[1].isdigit():
        raise InvalidCommand(f"this is no command: {line!r}")
    return Command(verb, int(words[1]))


def _parse_json(line: str) -> Command:
    try:
        said = json.loads(line)
    except ValueError:
        raise InvalidCommand(f"this is not JSON: {line!r}") from None
    if len(said) != 1:
        raise InvalidCommand("one command a line")
    [(name, argument)] = said.items()
    verb = _verb(name)
    match verb, argument:
        case Verb.FAULTS, dict():
            return Command(verb, faults=Faults.parse(argument))
        case ((Verb.YES | Verb.NO), int()) if argument is not True and argument is not False:
            return Command(verb, argument)
        case _ if argument is True and verb is not Verb.FAULTS:
            return Command(verb)
        case _:
            raise InvalidCommand(f"{verb} does not take {argument!r}")


def _verb(word: str) -> Verb:
    try:
        return Verb(word)
    except ValueError:
        raise InvalidCommand(f"there is no command {word!r}") from None
