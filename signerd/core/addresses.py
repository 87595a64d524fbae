"""Addresses as a person recognises them: in the form that devices show, and those of pinned vaults.

Where a person compares with a device, the device's form comes first. The network's own form comes second,
with the reason (``text.as_compared``). A person who gets used to addresses that are nearly the same would
overlook an attack.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from custody.common.text import name_key
from multisig import MAX_INDEX, RECEIVE, Network, Vault, decode_address, encode_address
from signerd.core.text import bounded, place_words
from signerd.core.values import Pin


def on_screen(script: bytes, network: Network) -> str | None:
    """As devices write it; None where the script has no address.

    Most know testnet's form alone for every test network; signet's is the same.
    """
    return encode_address(script, Network.TESTNET4 if network is Network.REGTEST else network)


def address_on_screen(address: str, network: Network) -> str:
    """The device's form of an address of ``network``. Raises MultisigError for a malformed one."""
    return on_screen(decode_address(address, network), network) or address


# How many addresses below and above the next unused one are recognised.
RECOGNISED_ADDRESSES = 100


@dataclass(frozen=True)
class PinnedPlace:
    """A receive address of a pinned vault. ``called``: as of ``called_here``. ``fault``: why not to pay to
    it.
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
    """A label for each pinned vault, by its code. The platform chose the name, so the label also has the
    code's first group, or the whole code where two vaults have the same name.
    """
    names = {pin.vault.verification_code: bounded(pin.name) for pin in pins}
    bearers = Counter(name_key(name) for name in names.values())
    return {
        code: f"'{name}' ({code if bearers[name_key(name)] > 1 else code.partition('-')[0]})"
        for code, name in names.items()
    }


@lru_cache(maxsize=128)
def receive_scripts(vault: Vault, following: int) -> Mapping[bytes, int]:
    """The index of each receive address by its script: ``RECOGNISED_ADDRESSES`` below ``following`` and as
    many above.
    """
    indexes = range(
        max(0, following - RECOGNISED_ADDRESSES), min(following + RECOGNISED_ADDRESSES, MAX_INDEX + 1)
    )
    return {vault.script_pubkey(RECEIVE, index): index for index in indexes}
