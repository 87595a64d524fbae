"""A signer's desk for tests: Alice's pinned 2-of-3 vault, its proposals, and what her machine knows."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from custody.schemas.proposals import ProposalStatus, TxType
from multisig import MultisigError, Network, Psbt, Vault, encode_address, inspect
from signerd.core.audit import Note
from signerd.core.events import News
from signerd.core.review import ProposalReview, review
from signerd.core.rules.reading import Known, written_rules
from signerd.core.rules.values import Rules
from signerd.core.states import State
from signerd.core.tokens import ModelScreen
from signerd.core.values import (
    Neighbour,
    OwnKey,
    Pin,
    ReviewContext,
    SigningLimits,
    Snapshot,
    VaultClaim,
    Work,
    todo,
)
from signerd.journal import Journal
from signerd.journal.proposals import RECONSIDERED
from tests.support.counted import counted
from tests.support.wallets import ALICE, Signer, make_spend, make_vault

VAULT = make_vault()
VAULT_ID = "vault-1"
NETWORK = Network.REGTEST
PROFILE = ALICE.profile(NETWORK)
PROFILE_KEY = OwnKey(PROFILE.key, "profile", 0)
# A device that shows every token's data in full.
SCREEN = ModelScreen("Ledger 2.4.6", 80)
# All that the platform says about it.
CLAIM = VaultClaim(VAULT_ID, 1, "Treasury", VAULT.descriptor, 2, 3, VAULT.address(0, 0))


def own_keys(signer: Signer = ALICE, accounts: int = 2) -> tuple[OwnKey, ...]:
    return tuple(OwnKey(signer.vault_key(NETWORK, account), "vault", account) for account in range(accounts))


def make_pin(vault: Vault = VAULT) -> Pin:
    return Pin(VAULT_ID, 1, "Treasury", vault, ALICE.vault_key(NETWORK, 0))


def claim(name: str = "Treasury", **changes: object) -> VaultClaim:
    """What the platform says of the pinned vault."""
    return replace(VaultClaim(VAULT_ID, 1, name, VAULT.descriptor), **changes)


def review_context(**changes: object) -> ReviewContext:
    usual = ReviewContext(
        network=NETWORK,
        limits=SigningLimits(),
        pin=make_pin(),
        claim=claim(),
        own_keys=own_keys(),
        screen=SCREEN,
    )
    return replace(usual, **changes)


def spend(**changes: object) -> Psbt:
    return make_spend(VAULT, **changes)


def open_journal(folder: Path, **options: Any) -> Journal:
    judged_by = {
        name: options.pop(name) for name in ("limits", "rules", "lowered", "book") if name in options
    }
    journal = Journal(folder, **{"network": NETWORK, **options})
    vars(journal).update(judged_by)
    return journal


def prepared_journal(folder: Path, keys: tuple[OwnKey, ...] | None = None, **options: Any) -> Journal:
    """It knows Alice's keys (of two accounts, unless ``keys`` are given) and her pinned vault."""
    journal = open_journal(folder, **options)
    journal.add_own_keys(keys or own_keys(), "key-1", Note("registered", "key-1"))
    journal.learn(CLAIM)
    journal.add_pin(make_pin(), Note("pinned", VAULT_ID))
    return journal


def reviewed(journal: Journal, psbt_id: str) -> ProposalReview:
    """What the person is shown now, and the hash to approve it by."""
    snapshot = journal.record(psbt_id).snapshot
    return review(snapshot, journal.review_context(snapshot))


def refused_by(snapshot: Snapshot, context: ReviewContext | None = None) -> set[str]:
    found = review(snapshot, context or review_context())
    assert not found.allowed
    return {verdict.name for verdict in found.refusals}


def snapshot_of(psbt: Psbt | bytes, psbt_id: str = "p-1", **changes: object) -> Snapshot:
    """What an honest platform says about a PSBT, with ``changes``."""
    data = psbt if isinstance(psbt, bytes) else psbt.to_bytes()
    usual = Snapshot(
        psbt_id=psbt_id,
        workspace_id=1,
        workspace_network="testnet",
        vault_id=VAULT_ID,
        kind=TxType.SEND,
        status=ProposalStatus.PENDING,
        psbt=data,
        recipients=(),
        amounts=(),
        op_return=None,
        fee=0,
        txid_expected="",
        description="Invoice 7",
        created_by="2",
        required=2,
        collected=0,
    )
    try:
        parsed = Psbt.parse(data)
    except MultisigError:
        return replace(usual, **changes)
    seen = inspect(parsed, VAULT, network=NETWORK)
    honest = replace(
        usual,
        recipients=tuple(encode_address(p.script_pubkey, NETWORK) or "" for p in seen.payments),
        amounts=tuple(int(p.amount) for p in seen.payments),
        op_return="0x" + seen.op_returns[0].data.hex() if seen.op_returns else None,
        fee=seen.fee or 0,
        txid_expected=seen.txid,
    )
    return replace(honest, **changes)


def neighbour(
    psbt: Psbt, /, psbt_id: str = "p-0", state: State = State.SUBMITTED, *, signed: bool = True, **more: Any
) -> Neighbour:
    """Another proposal, of which all coins and payments are compared."""
    return Neighbour(
        psbt_id,
        state,
        signed,
        frozenset(item.outpoint for item in psbt.inputs),
        frozenset((output.script_pubkey, int(output.amount)) for output in psbt.outputs),
        **({"psbt": psbt.to_bytes(), "txid": psbt.tx.txid} | more),
    )


def signed_by(signer: Signer, snapshot: Snapshot) -> bytes:
    """The PSBT that the signer's device returns for the proposal."""
    return signer.sign(Psbt.parse(snapshot.psbt)).to_bytes()


def judge_again(journal: Journal) -> tuple[News, ...]:
    """As the daemon does when it is due; twice, where nothing is judged again but by what has changed (S34).
    What it becomes is what a review says then.
    """
    news: list[News] = []
    judged: dict[str, tuple[Snapshot, ReviewContext]] = {}
    for _ in range(2):
        for psbt_id in journal.ids(RECONSIDERED):
            snapshot = journal.record(psbt_id).snapshot
            by = journal.review_context(snapshot)
            came, times = counted(partial(journal.reconsider, psbt_id), of=review)
            assert not times or judged.get(psbt_id) != (snapshot, by)
            record = journal.record(psbt_id)
            assert review(snapshot, by).allowed is (record.state is State.WAITING_PERSON)
            judged[psbt_id], news = (snapshot, by), [*news, *came]
    return tuple(news)


def resumed(journal: Journal) -> dict[str, Work]:
    """What a daemon does at its start, in order."""
    journal.restart()
    found = {record.psbt_id: todo(record) for record in journal.records()}
    delivered = {psbt_id for psbt_id, work in found.items() if work not in {None, Work.ASK_DEVICE}}
    assert set(journal.to_deliver()) == delivered
    return {psbt_id: work for psbt_id, work in found.items() if work is not None}


def read_rules(text: str, network: Network, known: Known = MappingProxyType({})) -> Rules:
    """The rules in the text; ``known`` are the pinned quorums."""
    return written_rules(text, network).resolved(known)
