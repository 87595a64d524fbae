"""What the status tells a person beside its figures: what is missing, what is wrong, what was lowered."""

from collections.abc import Iterator

from signerd.account.follower import Follower
from signerd.account.session import Account
from signerd.account.vaults import seen_vaults
from signerd.core.text import plain
from signerd.feed import Troubles
from signerd.journal import Journal


def notes_of(account: Account, follower: Follower, journal: Journal, troubles: Troubles) -> Iterator[str]:
    yield from _session(account, follower)
    yield from troubles.sentences()
    yield from _keys(journal)
    for vault in seen_vaults(journal):
        if vault.fault:
            yield f"Vault {plain(vault.name)}: {vault.fault}"
    yield from _configuration(journal)
    for record in journal.unsettled():
        if record.alarm:
            yield f"Proposal {record.psbt_id}: {record.alarm}"


def _session(account: Account, follower: Follower) -> Iterator[str]:
    if not account.signed_in.is_set():
        yield "Nobody is signed in: run `signerd login`."
    elif follower.state.trouble is not None:
        yield f"The platform: {plain(follower.state.trouble)}"
    if account.trouble is not None:
        yield f"The renewed session cannot be stored: {account.trouble}"


def _keys(journal: Journal) -> Iterator[str]:
    if not journal.own_keys():
        yield "No key is registered: connect your device and run `signerd register`."
    revoked = journal.keys.revocation()
    if revoked is not None:
        yield f"{revoked.sentence} {revoked.advice}"


def _configuration(journal: Journal) -> Iterator[str]:
    if journal.lowered:
        yield f"Lowered in the configuration: {', '.join(sorted(journal.lowered))}."
    pinned = {pin.vault.verification_code for pin in journal.pins()}
    for vault, codes in sorted(journal.rules.sections().items()):
        if codes.isdisjoint(pinned):
            yield f"rules.toml has rules for a vault that is not pinned here now: {plain(vault)}"
