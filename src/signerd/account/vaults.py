"""Pinning: the person compares a vault with the other signers, and from then on this machine knows it (S16).

Never in the same step as a spend: a proposal of a vault that is not pinned is refused until the person comes here.
"""

from dataclasses import dataclass

from multisig import RECEIVE, MultisigError, Vault
from signerd.core.audit import Note
from signerd.core.checks.vault import own_key_of, same_quorum
from signerd.core.text import said
from signerd.core.values import OwnKey, Pin
from signerd.errors import AccountReused, NoRegisteredKey, NotOurVault, UnknownVault, VaultDiffers, WrongCode
from signerd.journal import Journal


@dataclass(frozen=True)
class SeenVault:
    """A vault as the platform shows it, read with this machine's own eyes.

    ``fault`` says why it cannot be pinned or used; ``vault`` is None where its descriptor cannot be read.
    """

    vault_id: str
    workspace_id: int
    name: str
    vault: Vault | None
    own: OwnKey | None
    pinned: bool
    enrolled: bool
    fault: str | None

    @property
    def first_address(self) -> str | None:
        return None if self.vault is None else self.vault.address(RECEIVE, 0)


def seen_vaults(journal: Journal) -> tuple[SeenVault, ...]:
    """Every vault that the platform ever showed."""
    return tuple(_seen(journal, *claim) for claim in journal.claims())


def seen_vault(journal: Journal, vault_id: str) -> SeenVault:
    """Raises UnknownVault."""
    for vault in seen_vaults(journal):
        if vault.vault_id == vault_id:
            return vault
    raise UnknownVault(f"the platform has shown no vault '{vault_id}'")


def pin(journal: Journal, vault_id: str, code: str) -> Pin:
    """Pin a vault whose verification code the person compared with the other signers. Again is the same again.

    Raises:
        UnknownVault, NoRegisteredKey, NotOurVault, VaultDiffers, WrongCode, AccountReused: nothing was changed.
    """
    seen = seen_vault(journal, vault_id)
    pinned = journal.pin(vault_id)
    if seen.vault is None:
        raise VaultDiffers(f"the vault cannot be used: {seen.fault}")
    if pinned is not None and not same_quorum(pinned.vault, seen.vault):
        raise VaultDiffers("the platform now shows another vault than the one that was pinned")
    if _letters(code) != _letters(seen.vault.verification_code):
        raise WrongCode("the code is not the code of this vault")
    if not journal.own_keys():
        raise NoRegisteredKey("no device of yours is registered, so no vault can be known to hold its key")
    if seen.own is None:
        raise NotOurVault("no key of your device is in this vault")
    if pinned is not None:
        return pinned
    _require_own_account(journal, seen.own)
    fresh = Pin(vault_id, seen.workspace_id, seen.name, seen.vault, seen.own.key)
    facts = {
        "account": seen.own.account,
        "code": seen.vault.verification_code,
        "descriptor": seen.vault.descriptor,
    }
    journal.add_pin(fresh, Note("pinned", vault_id, facts))
    return fresh


def _require_own_account(journal: Journal, own: OwnKey) -> None:
    for other in journal.pins():
        if other.own_key == own.key:
            raise AccountReused(
                f"account {own.account} of your device already serves the vault '{other.name}'"
            )


def _seen(journal: Journal, vault_id: str, workspace_id: int, name: str, descriptor: str) -> SeenVault:
    pinned = journal.pin(vault_id)
    vault: Vault | None
    own: OwnKey | None
    fault: str | None
    try:
        vault = Vault.from_descriptor(descriptor, journal.network)
    except MultisigError as error:
        vault, own, fault = None, None, said(error)
    else:
        own = own_key_of(vault, journal.own_keys())
        fault = _fault(pinned, vault, own)
    return SeenVault(
        vault_id,
        workspace_id,
        name,
        vault,
        own,
        pinned=pinned is not None,
        enrolled=journal.is_enrolled(vault_id),
        fault=fault,
    )


def _fault(pinned: Pin | None, vault: Vault, own: OwnKey | None) -> str | None:
    if pinned is not None and not same_quorum(pinned.vault, vault):
        return "ALARM: it is not the vault that was pinned here."
    return None if own else "None of its keys is a registered key of your device."


def _letters(code: str) -> str:
    """A code as it is compared: people leave out the dashes and type small letters."""
    return "".join(code.split()).replace("-", "").upper()
