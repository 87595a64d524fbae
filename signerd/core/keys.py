"""The signer's keys at the platform: how many accounts are registered, and whether the platform calls the key
revoked.

Each vault uses one BIP-48 account of each signer. Accounts are hardened, so the platform cannot derive the
next one: the device exports many at once. The platform's figures are not proven; a wrong one only asks for
too many or too few keys.

A revocation is not proven either. It stops signatures and is shown; it removes nothing here, and the platform
cannot lift it: the person registers a device again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from custody.common.text import foreign
from custody.schemas.keys import MAX_ACCOUNT, Key
from signerd.core.values import FormerKey, OwnKey

# The platform's API: the first eight, more later.
FIRST_ACCOUNTS = 8
# The accounts that one approval adds, and the number of free accounts at which the person is asked.
MORE_ACCOUNTS = 32
FEW_ACCOUNTS = 2
ALL_ACCOUNTS = MAX_ACCOUNT + 1


@dataclass(frozen=True)
class VaultAccounts:
    """``known``: accounts that this machine has, from 0 on; ``following``: the number after the platform's
    highest; ``free``: those that no vault uses, or None where the platform does not say.
    """

    known: int = 0
    following: int = 0
    free: int | None = None

    @property
    def registered(self) -> int:
        return min(max(self.known, self.following), ALL_ACCOUNTS)

    @property
    def run_out(self) -> bool:
        """Whether few accounts are free and more can be registered."""
        return self.free is not None and self.free <= FEW_ACCOUNTS and self.registered < ALL_ACCOUNTS

    @property
    def wanted(self) -> int:
        """How many accounts, from 0 on, a registration offers now."""
        if self.run_out:
            return min(self.registered + MORE_ACCOUNTS, ALL_ACCOUNTS)
        return max(self.registered, FIRST_ACCOUNTS)

    @property
    def advice(self) -> str | None:
        """What the person has to do; None where nothing."""
        if self.run_out:
            return (
                "The keys of your device for new vaults run out: each vault takes one. Connect it and run "
                f"`signerd register`: one approval registers keys for up to {MORE_ACCOUNTS} more vaults."
            )
        if self.known < self.following:
            return (
                "Another desktop registered more keys of your device than this one knows. Connect it and run "
                "`signerd register`, so that vaults with those keys can be pinned here."
            )
        return None


class RevocationReason(StrEnum):
    """The reason of a revocation. Where the platform gives none, another active key means that it was
    replaced.
    """

    REPLACED = "replaced"
    LOST = "lost"
    REVOKED = "revoked"


OF_LOST = (
    "The platform takes no signature of it any more. Pay nothing more into its vaults, and move their coins "
    "with the other signers' devices; where those are too few, with your seed words and the emergency kit."
)


@dataclass(frozen=True)
class Revocation:
    """The platform says that the key registered here is revoked. ``successor``: the fingerprint that replaced
    it.
    """

    key_id: str
    fingerprint: str
    why: RevocationReason
    at: datetime
    successor: str = ""

    @property
    def sentence(self) -> str:
        first = _day(self.at)
        return f"The platform says that your key {self.fingerprint} {self._how}, as first heard on {first}."

    @property
    def advice(self) -> str:
        if self.why is RevocationReason.LOST:
            return (
                f"{OF_LOST} If you know nothing of this, call the platform's operator and the other signers. "
                "To go on, register another device: `signerd register --replace`."
            )
        return (
            "Nothing is signed with it, and all that is pinned stays. If you know nothing of this, call the "
            "platform's operator and the other signers. To go on, connect the device that you use now and "
            "run `signerd register`; with `--replace` it becomes your key where another one is."
        )

    @property
    def _how(self) -> str:
        if self.why is RevocationReason.LOST:
            return "was marked lost there"
        if self.why is RevocationReason.REVOKED:
            return "was revoked there, as it is when a device is marked lost"
        another = f"the device {self.successor}" if self.successor else "another device"
        return f"was replaced by {another} from another desktop"


def is_marked_lost(xpub: str, listed: Sequence[Key]) -> bool:
    """Whether the platform's list has this key as lost, under whichever id."""
    return any(key.xpub.value == xpub and key.revoked_reason.value == RevocationReason.LOST for key in listed)


def revocation_of(registered: OwnKey, key_id: str, listed: Sequence[Key], now: datetime) -> Revocation | None:
    """The revocation of our registered key in the platform's list of those on this network, or None.

    The same key under another id, registered from another desktop, counts as active, unless it was lost.
    """
    active = [key for key in listed if key.status == "active"]
    is_lost = is_marked_lost(str(registered.key.xpub), listed)
    is_active = any(key.xpub.value == str(registered.key.xpub) for key in active)
    if not is_lost and (is_active or all(key.id != key_id or key.status == "active" for key in listed)):
        return None
    others = [key.master_fingerprint.value or "" for key in active]
    revoked = RevocationReason.REPLACED if others else RevocationReason.REVOKED
    why = RevocationReason.LOST if is_lost else revoked
    successor = foreign(others[0])[:8] if others else ""
    return Revocation(key_id, str(registered.key.fingerprint), why, now, successor)


def with_lost(fingerprint: str) -> str:
    """Why a vault with this key of ours is not signed for, and what to do."""
    return f"Your key {fingerprint} in this vault was marked lost. {OF_LOST}"


def made_with_former(former: FormerKey) -> str:
    """As ``with_lost``, of a vault with only a former key of ours."""
    if former.lost:
        return with_lost(str(former.own.key.fingerprint))
    when = "" if former.replaced is None else f" on {_day(former.replaced)}"
    return (
        f"This vault was made with your former key {former.own.key.fingerprint}, of a device of yours that "
        f"was replaced{when}; the registered key of your device now is not in it. Nothing of it is signed "
        "here: have its coins moved on into a vault with your new key. Where you still have the former "
        "device, connect it and run `signerd register --replace`: the platform takes its signature for that "
        "move."
    )


def _day(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d}"
