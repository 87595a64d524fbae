"""A forward: the member's own money, from the profile that was registered with the key, into the pinned vault."""

from multisig import RECEIVE, Vault
from signerd.core.checks.case import Case, InspectedCase
from signerd.core.places import GAP
from signerd.core.signing import signing_of
from signerd.core.text import amount
from signerd.core.verdicts import Verdict, allow, refuse

# A forward goes to the vault's next address, which each deposit moves on; how far it has got, only the chain and the platform
# know. A wallet that restores the vault finds its coins with a gap limit of this at worst, so none is out of reach (S9). All of
# them are derived in half a second, once, with the most keys that a vault has.
RECEIVE_ADDRESSES = GAP


def from_profile(case: Case) -> Verdict:
    """Which of our keys the coins are of. That they are is proven by the inspection."""
    name, signing = "forward-profile", signing_of(case.snapshot, case.around)
    if signing is None:
        return refuse(name, "It is a forward, but not from a profile that is registered with your device.")
    origin = signing.key.origin
    return allow(name, f"It is from your own profile, {origin}.", fingerprint=str(origin.fingerprint))


def into_vault(case: InspectedCase) -> Verdict:
    """S12: the only payment goes to an address that this machine derives from the pinned vault; the rest comes back."""
    name, payments = "forward-destination", case.inspection.payments
    if case.inspection.op_returns:
        return refuse(name, "A forward carries no data, and this one does.")
    if len(payments) != 1:
        return refuse(
            name,
            f"A forward pays the vault and nobody else; this one has {len(payments)} payments.",
            payments=len(payments),
        )
    assert case.pin is not None, "a forward whose vault is not pinned is not inspected"
    (paid,) = payments
    index = receive_index(case.pin.vault, paid.script_pubkey)
    if index is None:
        to = paid.address or f"script {paid.script_pubkey.hex()}"
        return refuse(name, f"It pays {to}, which is no receive address of the pinned vault.")
    return allow(
        name,
        f"All of {amount(paid.amount)} goes into the pinned vault, to its address {index}.",
        address_index=index,
    )


def receive_index(vault: Vault, script: bytes) -> int | None:
    """Which of the vault's first receive addresses has that script; None where none has."""
    return next(
        (index for index in range(RECEIVE_ADDRESSES) if vault.script_pubkey(RECEIVE, index) == script), None
    )
