"""From lines of the feed to one notice. A lock screen shows it to whoever walks by: no amount and no name, unless that was asked for."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, unique

from signerd.core.text import plain
from signerd.feed import WAITS, Line

PAIRING = "pairing"
# Two lines of a desktop's bubble.
LONGEST_DETAIL = 160
NOT_ON_SCREEN = "Your device will not show all of it."
# What some desktops read as markup in a body (Desktop Notifications Specification 1.2, "Markup").
_MARKUP = str.maketrans("", "", "<>&")


@unique
class Kind(Enum):
    """One and many, in the order of what cannot wait; ``urgent``: stays until it is dismissed."""

    ALARM = ("signerd warns you", "signerd warns you of {count} matters", True)
    QUESTION = ("A device asks you something", "Devices ask you {count} things", True)
    PAIRING = ("An app asks to be paired", "Apps ask to be paired, {count} times", False)
    PROPOSAL = ("A payment waits for your decision", "{count} payments wait for your decision", False)
    DEVICE = (
        "An approved payment waits for its device",
        "{count} approved payments wait for a device",
        False,
    )
    REFUSED = ("A payment was refused by a check", "{count} payments were refused by checks", False)
    BROADCAST = ("A payment was sent to the network", "{count} payments were sent to the network", False)

    @property
    def urgent(self) -> bool:
        return bool(self.value[2])

    def words(self, count: int) -> str:
        one, many, _urgent = self.value
        return str(one) if count == 1 else str(many).format(count=count)


@dataclass(frozen=True)
class Notice:
    """``body`` may be empty."""

    title: str
    body: str
    urgent: bool


_STATES = {
    "waiting-for-device": Kind.DEVICE,
    "refused": Kind.REFUSED,
    "broadcast": Kind.BROADCAST,
}


def kind_of(line: Line) -> Kind | None:
    """None for what can wait until somebody looks."""
    match line.kind:
        case "alarm":
            return Kind.ALARM
        case "question":
            return Kind.QUESTION
        case "ask":
            return Kind.PAIRING if line.subject == PAIRING else Kind.PROPOSAL
        case "state":
            return _STATES.get(line.text)
        case _:
            return None


def notice_of(lines: Iterable[Line], *, details: bool) -> Notice | None:
    """One notice for all of them, the most pressing kind as its title; None where nothing of it is for the person.

    What happened twice to the same subject is told once.
    """
    found: dict[Kind, dict[str, Line]] = {}
    for line in lines:
        kind = kind_of(line)
        if kind is not None:
            found.setdefault(kind, {})[line.subject] = line
    if not found:
        return None
    pressing = [kind for kind in Kind if kind in found]
    title, *others = [kind.words(len(found[kind])) for kind in pressing]
    body = [f"{other}." for other in others]
    if any(line.text.startswith(f"{WAITS} ") for line in found.get(Kind.PROPOSAL, {}).values()):
        body.append(NOT_ON_SCREEN)
    if details:
        body.append(_details([line for kind in pressing for line in found[kind].values()]))
    return Notice(f"{title}.", " ".join(body), any(kind.urgent for kind in found))


def _details(lines: Sequence[Line]) -> str:
    """Of a single line its words; of several, what they are about, the most pressing first: the end may be cut."""
    if len(lines) == 1:
        text = lines[0].text if lines[0].kind != "state" else lines[0].subject
    else:
        text = ", ".join(line.subject for line in lines)
    text = plain(text).translate(_MARKUP)
    return text if len(text) <= LONGEST_DETAIL else text[: LONGEST_DETAIL - 1] + "…"
