"""Addresses of vaults that are pinned here, as a person is told them where a payment goes to one."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from multisig import MAX_INDEX, RECEIVE, Vault
from signerd.core.text import bounded, place_words
from signerd.core.values import Pin

# An address is recognised so far below and beyond the last one that is known to be used.
LOOKED_AROUND = 100


@dataclass(frozen=True)
class PinnedPlace:
    """A receive address of a pinned vault. ``called``: as of ``called_here``. ``fault``: why nothing is to be
    sent there.
    """

    called: str
    index: int
    fault: str | None = None

    @property
    def words(self) -> str:
        what = f"your pinned vault {self.called}, {place_words(RECEIVE, self.index)}"
        if self.fault is None:
            return f"{what}, derived again here"
        return f"{what}. Send nothing here before you have looked into this: {self.fault}"


def called_here(pins: Iterable[Pin]) -> dict[str, str]:
    """What each pinned vault is called in a sentence, by its code: the platform chose its name, so the code's
    first group stands beside it, and the whole code where two bear one name.
    """
    names = {pin.vault.verification_code: bounded(pin.name) for pin in pins}
    bearers = Counter(name.casefold() for name in names.values())
    return {
        code: f"'{name}' ({code if bearers[name.casefold()] > 1 else code.partition('-')[0]})"
        for code, name in names.items()
    }


@lru_cache(maxsize=128)
def receive_scripts(vault: Vault, following: int) -> Mapping[bytes, int]:
    """The index of each receive address by its script: ``LOOKED_AROUND`` below ``following``, as many from it
    on.
    """
    indexes = range(max(0, following - LOOKED_AROUND), min(following + LOOKED_AROUND, MAX_INDEX + 1))
    return {vault.script_pubkey(RECEIVE, index): index for index in indexes}
