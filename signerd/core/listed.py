"""Who may receive a new token from the start: each address of its first list, with the name that this machine has for it.

A deployment commits to the list by a hash, and no device shows any of it: what stands here is all that a person sees of it.
"""

from dataclasses import dataclass
from itertools import islice

from multisig import RECEIVE
from multisig.tokens import Bytecode, listed_addresses
from signerd.core.text import plain
from signerd.core.values import ReviewContext

# A name is a label beside an address, and never pushes it out of sight.
_LONGEST_NAME = 40


@dataclass(frozen=True)
class ListedAddress:
    """``name``: what this machine knows it as, in words; empty where it does not."""

    address: str
    name: str

    @property
    def words(self) -> str:
        return f"{self.address} ({self.name})" if self.name else self.address


def listed_at_first(
    token: Bytecode, around: ReviewContext, most: int | None = None
) -> tuple[ListedAddress, ...]:
    """In the order of the bytecode, which is one for each list; ``most``: only the first so many."""
    names = _names(around)
    addresses = listed_addresses(token, around.network)
    pairs = zip(token.whitelist, addresses, strict=True)
    return tuple(ListedAddress(address, names.get(script, "")) for script, address in islice(pairs, most))


def _names(around: ReviewContext) -> dict[bytes, str]:
    """By output script: of each pinned vault the address that owns and holds its tokens. The platform's names are nobody's."""
    names = {
        pin.vault.script_pubkey(RECEIVE, 0): f"your pinned vault '{_short(pin.name)}'" for pin in around.pins
    }
    if around.pin is not None:
        names[around.pin.vault.script_pubkey(RECEIVE, 0)] = "this vault itself"
    return names


def _short(name: str) -> str:
    shown = plain(name)
    return shown if len(shown) <= _LONGEST_NAME else f"{shown[:_LONGEST_NAME]}…"
