"""Pinning: the person compares a vault's code with the other signers, and this machine stores the vault
(S16).

Pinning is never part of a spend: a proposal of a vault that is not pinned is refused, and neither pinning nor
unpinning approves anything. ``signerd.daemon.vaults`` has the steps on the device.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from custody.common.text import foreign, said
from multisig import RECEIVE, MultisigError, OriginKey, Vault
from signerd.core.audit import Note
from signerd.core.claims import (
    NO_KEY_OF_OURS,
    contradictions,
    differences,
    fault_of_pinned,
    former_key_of,
    impostor,
    own_key_of,
    same_quorum,
    vault_of,
    without_our_key,
)
from signerd.core.events import News
from signerd.core.keys import made_with_former
from signerd.core.states import RECORD, SOURCES
from signerd.core.text import as_argument
from signerd.core.values import OwnKey, Pin, VaultClaim
from signerd.errors import (
    AccountReused,
    NoRegisteredKey,
    NotOurVault,
    NotPinned,
    UnknownVault,
    VaultDiffers,
    WrongCode,
)
from signerd.journal import Journal
from signerd.journal.keys_and_vaults import NOT_AT_DEVICE, AtDevice

OF_OTHERS = f"{NO_KEY_OF_OURS[:-1]}: nothing of it is asked of you."


@dataclass(frozen=True)
class SeenVault:
    """A vault as it was pinned, or else as the platform shows it.

    ``fault``: why it cannot be pinned or used. ``vault``: None where its descriptor cannot be read.
    ``changes``: how the platform has shown a pinned vault differently, until the person has looked.
    ``renamed``: the platform's name for a pinned vault, if it is another one. ``of_others``: it cannot be
    pinned only because none of our keys is in it. ``left``: it was made with a former key of ours, and the
    person has unpinned it.
    """

    vault_id: str
    workspace_id: int
    name: str
    vault: Vault | None
    own: OwnKey | None
    fault: str | None
    pinned: bool = False
    enrolled: bool = False
    address_shown: bool = False
    changes: tuple[str, ...] = ()
    renamed: str | None = None
    of_others: bool = False
    left: bool = False


def seen_vaults(journal: Journal) -> Iterator[SeenVault]:
    """Every vault that the platform ever showed. The first look at one derives its keys."""
    return (_seen(journal, claim) for claim in journal.claims())


def seen_vault(journal: Journal, vault_id: str) -> SeenVault:
    """Raises UnknownVault."""
    claim = journal.claim(vault_id)
    if claim is None:
        raise UnknownVault(f"the platform has shown no vault '{vault_id}'")
    return _seen(journal, claim)


def pinnable(journal: Journal, vault_id: str, given: Vault | None = None, source: str = RECORD) -> Pin:
    """The pin that pinning would record. For a pinned vault that did not change, its pin. ``given``: the
    vault as the person has it from this ``source``.

    Raises:
        UnknownVault, VaultDiffers, NoRegisteredKey, NotOurVault, AccountReused: it cannot be pinned.
    """
    seen = seen_vault(journal, vault_id)
    vault = seen.vault
    if vault is None or seen.fault is not None:
        if vault is not None and not seen.changes and seen.own is None:
            _own_key(journal, vault)  # Says more of what is wrong with the keys.
        hint = None
        if seen.changes:
            hint = (
                "Call the other signers. Once you know what happened: "
                f"`signerd unpin {as_argument(vault_id)}`, then pin it again."
            )
        raise VaultDiffers(f"the vault cannot be used: {seen.fault}", hint=hint)
    if given is not None and not same_quorum(vault, given):
        raise _disagreement(vault, given, SOURCES[source])
    pinned = journal.pin(vault_id)
    if pinned is not None:
        return pinned
    own = _own_key(journal, vault)
    return Pin(vault_id, seen.workspace_id, seen.name, vault, own.key)


def require_code(vault: Vault, code: str) -> None:
    """Raises WrongCode, which says where it differs."""
    # People leave out the dashes and type small letters.
    codes = code, vault.verification_code
    typed, right = ("".join(one.split()).replace("-", "").upper() for one in codes)
    if typed == right:
        return
    if len(typed) != len(right):
        raise WrongCode(f"the code has {len(typed)} letters and figures, and the vault's has {len(right)}")
    # Its groups have four each.
    other = [at // 4 + 1 for at in range(0, len(right), 4) if typed[at : at + 4] != right[at : at + 4]]
    raise WrongCode(
        f"the code is not the code of this vault: it differs in group {', '.join(map(str, other))}"
    )


def pin(journal: Journal, wanted: Pin, source: str, at_device: AtDevice, *, by_eye: bool = False) -> Pin:
    """Record a pin after the code was typed and the device was asked. Idempotent.

    Everything is checked again: what the platform says may have changed meanwhile. ``by_eye``: the person
    says that the device shows the address.

    Raises:
        As ``pinnable``: nothing was changed.
    """
    again = pinnable(journal, wanted.vault_id, wanted.vault, source)
    if journal.pin(wanted.vault_id) is not None:
        known = journal.at_device(again)
        both = AtDevice(known.enrolled or at_device.enrolled, known.address_shown or at_device.address_shown)
        if both != known:
            shown = "shown" if both.address_shown else "not shown"
            journal.set_at_device(
                again, both, Note("enrolled", wanted.vault_id, {"address_on_device": shown})
            )
        return again
    own = _own_key(journal, again.vault)
    shown = "compared by the person" if by_eye else "shown"
    if not at_device.address_shown:
        shown = "not shown"
    facts = {
        "account": own.account,
        "address": again.vault.address(RECEIVE, 0),
        "address_on_device": shown,
        "code": again.vault.verification_code,
        "descriptor": again.vault.descriptor,
        "source": source,
    }
    journal.add_pin(again, Note("pinned", wanted.vault_id, facts), at_device)
    return again


def unpin(journal: Journal, vault_id: str, code: str) -> tuple[News, ...]:
    """Remove a pin. The person types the vault's code.

    Raises:
        UnknownVault, NotPinned, WrongCode: nothing was changed.
    """
    pinned = journal.pin(vault_id)
    if pinned is None:
        seen_vault(journal, vault_id)
        raise NotPinned("the vault is not pinned")
    require_code(pinned.vault, code)
    facts = {
        "changes": list(journal.changes_of(pinned)),
        "code": pinned.vault.verification_code,
        "descriptor": pinned.vault.descriptor,
    }
    return journal.unpin(vault_id, Note("unpinned", vault_id, facts))


def _own_key(journal: Journal, vault: Vault) -> OwnKey:
    """Our exact key at its exact account, which no other pinned vault uses (S15). Raises leaves of
    VaultError.
    """
    known = journal.own_keys()
    if not known:
        raise NoRegisteredKey("no device of yours is registered, so no vault can be known to hold its key")
    forged = _impostor(journal, vault)
    if forged is not None:
        raise NotOurVault(
            f"ALARM: a key of the vault has your device's fingerprint {forged.fingerprint} at "
            f"{forged.origin.path}, but your device did not export it: someone replaced your key"
        )
    own = own_key_of(vault, known)
    former = former_key_of(vault, journal.former_keys())
    if own is None and former is not None:
        raise NotOurVault(made_with_former(former))
    if own is None:
        raise NotOurVault("no key of your device is in this vault")
    for other in journal.pins():
        if other.own_key == own.key:
            raise AccountReused(
                f"account {own.account} of your device already serves the vault '{foreign(other.name)}'"
            )
    return own


ONLY_LABELS = "No key differs, only its label: correct the fingerprint or path that is wrong."


def _disagreement(vault: Vault, given: Vault, words: str) -> VaultDiffers:
    """Shows both sides: the person has to find out which is wrong."""
    difference = " ".join(differences(given, vault, words)) or "They are of different networks."
    both = ((one.threshold, {key.xpub for key in one.cosigners}) for one in (given, vault))
    return VaultDiffers(
        f"{words} and the platform's record are not the same vault. {difference} "
        f"What {words} says: {_figures(given)}. What the record says: {_figures(vault)}",
        hint=ONLY_LABELS if next(both) == next(both) else None,
    )


def _figures(vault: Vault) -> str:
    return (
        f"{vault.threshold} of {len(vault.cosigners)}, first address {vault.address(RECEIVE, 0)}, "
        f"code {vault.verification_code}"
    )


def _seen(journal: Journal, claim: VaultClaim) -> SeenVault:
    pinned = journal.pin(claim.vault_id)
    if pinned is not None:
        return _seen_pinned(journal, claim, pinned)
    vault, own, fault, of_others, left = None, None, None, False, False
    try:
        vault = vault_of(claim.descriptor, journal.network)
    except MultisigError as error:
        fault = said(error)
    else:
        own = own_key_of(vault, journal.own_keys())
        fault = _fault(journal, claim, vault, own)
        of_others = fault == NO_KEY_OF_OURS and bool(journal.own_keys())
        former = former_key_of(vault, journal.former_keys())
        is_former = former is not None and fault == made_with_former(former)
        left = is_former and vault.verification_code in journal.pinned_codes().get(claim.vault_id, ())
    return SeenVault(
        claim.vault_id,
        claim.workspace_id,
        claim.name,
        vault,
        own,
        OF_OTHERS if of_others else fault,
        of_others=of_others,
        left=left,
    )


def _seen_pinned(journal: Journal, claim: VaultClaim, pinned: Pin) -> SeenVault:
    vault_changes, own_keys = journal.changes_of(pinned), journal.own_keys()
    own = own_key_of(pinned.vault, own_keys)
    # The device of a former key saw it, and the one of now has not.
    at_device = NOT_AT_DEVICE if own is None else journal.at_device(pinned)
    return SeenVault(
        claim.vault_id,
        pinned.workspace_id,
        pinned.name,
        pinned.vault,
        own,
        fault_of_pinned(pinned.vault, vault_changes, own_keys, journal.former_keys(), journal.lost()),
        pinned=True,
        **vars(at_device),
        changes=vault_changes,
        renamed=claim.name if claim.name != pinned.name else None,
    )


def _fault(journal: Journal, claim: VaultClaim, vault: Vault, own: OwnKey | None) -> str | None:
    faults = contradictions(claim, vault)
    if faults:
        return f"The platform's record contradicts its own descriptor. {' '.join(faults)}"
    if own is not None:
        return journal.lost()
    if _impostor(journal, vault) is not None:
        return "ALARM: it has your device's fingerprint on a key that is not your device's."
    return without_our_key(vault, journal.former_keys())


def _impostor(journal: Journal, vault: Vault) -> OriginKey | None:
    """A key with the fingerprint of our device, or of a former one, that the device did not export."""
    return impostor(vault, (*journal.own_keys(), *(former.own for former in journal.former_keys())))
