"""What each right allows, in words for the person who grants it: the same at the command line and on the page."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from signerd.callers import GRANTABLE, Right

RIGHT_WORDS: Mapping[Right, str] = MappingProxyType(
    {
        Right.READ: "see vaults, proposals, devices and what happens here",
        Right.XPUB: "read public keys and addresses: it can then see every payment, past and future, of your vaults and of your own account",
        Right.DISPLAY: "have an address shown on your device",
        Right.PROPOSE: "bring transactions for you to look at; nothing is signed before you approve it",
        Right.APPROVE: "approve and decline payments in your name, without asking you: then only your device still asks",
    }
)


def granted(rights: Iterable[str]) -> tuple[Right, ...]:
    """Those that an app may have at all, in the order of what it costs to grant them wrongly."""
    given = frozenset(rights)
    return tuple(right for right in GRANTABLE if right in given)


def rights_words(rights: Iterable[str]) -> tuple[str, ...]:
    """A line for each right, such as ``read: see vaults, …``."""
    return tuple(f"{right}: {RIGHT_WORDS[right]}" for right in granted(rights))
