"""What the screen of the signer's device shows of a token's data (S28)."""

from dataclasses import dataclass

from multisig.tokens import Payload, payload_parts

# Hashes: of what any screen that is known shows of them, 27 bytes at least, no two tokens have the same.
HASHES = frozenset({"contract", "bytecode hash"})


@dataclass(frozen=True)
class Screen:
    """``name``: the model, as the person knows it. ``whole``: data of up to so many bytes is shown whole; None: not known.

    ``first``: of longer data so many bytes are shown.
    """

    name: str
    whole: int | None
    first: int = 0

    def shown(self, size: int) -> int:
        """How many of so many bytes the person sees; of what is not known none."""
        if self.whole is None:
            return 0
        return size if size <= self.whole else self.first


def hidden_parts(payload: Payload, screen: Screen | None) -> tuple[str, ...]:
    """The parts of a payload that do not stand whole on the screen, in their order; without a device all of them."""
    parts = payload_parts(payload)
    size = sum(len(data) for _name, data in parts)
    shown, end, hidden = 0 if screen is None else screen.shown(size), 0, []
    for name, data in parts:
        end += len(data)
        if end > shown:
            hidden.append(name)
    return tuple(hidden)


def screen_words(payload: Payload, screen: Screen | None) -> str:
    """What the person will and will not see, before the device is asked."""
    size, hidden = sum(len(data) for _name, data in payload_parts(payload)), hidden_parts(payload, screen)
    if screen is None:
        return "This machine has not seen your device yet, so that it does not know how much of this data the screen shows."
    if screen.whole is None:
        return f"It is not known how much of this data your {screen.name} shows: take nothing of it as shown."
    if not hidden:
        return f"Your {screen.name} cannot read a token's data: it shows all {size} bytes as hex. Compare them digit for digit."
    return (
        f"Your {screen.name} shows the first {screen.shown(size)} of the {size} bytes as hex, then dots. Not on its screen: "
        f"{_listed(hidden)}. It signs them all the same."
    )


def _listed(parts: tuple[str, ...]) -> str:
    *before, last = (f"the {part}" for part in parts)
    return f"{', '.join(before)} and {last}" if before else last
