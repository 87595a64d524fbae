"""The crash harness's stories of other ways to a signature than a proposal's, as in `crash_stories.py`."""

import base64
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from custody.common.private_files import write_private
from firmware_bridge import DeviceState
from multisig import Psbt, signer_progress
from signerd.callers import GRANTABLE, TERMINAL, CallerKind, LoopbackCaller
from signerd.core import events
from signerd.core.signing import LIVES_SECONDS
from signerd.core.states import State
from signerd.core.values import Record
from signerd.daemon import airgap
from signerd.daemon.funds import vault_funds, vault_tokens
from signerd.daemon.service import Daemon
from signerd.errors import IllegalEvent
from signerd.journal import Journal
from signerd.journal.chain import utc_now
from signerd.runtime import FaultPoint
from tests.support.bills import bill
from tests.support.crash_stories import (
    ASKING,
    PSBT_ID,
    LastingPlatform,
    Story,
    add_one,
    asked_too_often,
    common_faults,
    count,
    lasting,
    payment_faults,
    prepare_payment,
    read_journal,
    sign_what_is_asked,
)
from tests.support.daemons import approve, state_of, until
from tests.support.desk import VAULT, VAULT_ID, signed_by, snapshot_of, spend
from tests.support.fake_bridge import FakeBridge
from tests.support.fake_platform import FakePlatform
from tests.support.payments import spend_of
from tests.support.tokens import GOLD, call, published, token_snapshot
from tests.support.wallets import ALICE

# --- a daemon restored from an old backup: it recovers later signatures -------------------------------------

FORGOTTEN = "p-9"
_SHOWN = snapshot_of(spend_of([9], (("cafe", 20_000),)), FORGOTTEN, collected=1)
RECALLED = replace(_SHOWN, psbt=signed_by(ALICE, _SHOWN))


def prepare_restored(folder: Path) -> None:
    prepare_payment(folder)
    with read_journal(folder) as journal:
        journal.restore(utc_now())


async def live_restored(folder: Path, fault: FaultPoint) -> None:
    """What was signed after the backup is on the platform's list; then a new proposal is approved."""
    shown = {FORGOTTEN: RECALLED, PSBT_ID: snapshot_of(spend())}
    platform = LastingPlatform(folder, shown, not_ours={FORGOTTEN}, fault=fault)
    async with lasting(folder, platform, FakeBridge()) as daemon:
        await until(lambda: not daemon.journal.behind())
        await sign_what_is_asked(daemon, folder)


def restored_faults(folder: Path, point: str) -> list[str]:
    with read_journal(folder) as journal:
        kinds = [(entry.note.kind, entry.note.subject) for entry in journal.audit()]
        recalled = kinds.count(("recalled", FORGOTTEN))
        stored = journal.record(FORGOTTEN).signature
    known = recalled == 1 and stored is not None and stored.psbt == RECALLED.psbt
    wrong = [] if known else [f"what was forgotten was recalled {recalled} times"]
    return [*wrong, *payment_faults(folder, point)]


RESTORED = Story("restored", prepare_restored, live_restored, restored_faults)


# --- a token's call: proven, asked, signed and submitted ----------------------------------------------------


async def live_tokens(folder: Path, fault: FaultPoint) -> None:
    shown = token_snapshot(call(), psbt_id=PSBT_ID)
    platform = LastingPlatform(folder, {PSBT_ID: shown}, published={1: published(GOLD)}, fault=fault)
    # It shows a token's data in full, so that the call is not held.
    bridge = FakeBridge(model="Trezor Model T", firmware="2.8.9")
    async with lasting(folder, platform, bridge) as daemon:
        await sign_what_is_asked(
            daemon, folder, lambda: daemon.journal.review_context(shown).screen is not None
        )
        await until(lambda: bool(daemon.follower.workspaces) and daemon.journal.claim(VAULT_ID) is not None)
        await vault_tokens(daemon, VAULT_ID)
        await vault_funds(daemon, VAULT_ID)


def token_faults(folder: Path, point: str) -> list[str]:
    with read_journal(folder) as journal:
        told = [entry.note.kind for entry in journal.audit()].count("token-proven")
        known = journal.bytecode(call()) == GOLD
    wrong = [] if known and told == 1 else [f"the token was proven {told} times"]
    return [*wrong, *payment_faults(folder, point)]


TOKENS = Story("tokens", prepare_payment, live_tokens, token_faults)


# --- imported PSBTs: one is withdrawn, one has expired, one is signed and handed out ------------------------

WALLET = LoopbackCaller(CallerKind.APP, "Wallet", frozenset(GRANTABLE), "app-1")
SIGNED, TAKEN_BACK, OVER = bill(0), bill(1, 10_000), bill(2, 20_000)


async def live_imported(folder: Path, fault: FaultPoint) -> None:
    platform = LastingPlatform(folder, {}, fault=fault)
    async with lasting(folder, platform, FakeBridge()) as daemon:
        # An app without an answer repeats its request.
        if not _of(daemon.journal, TAKEN_BACK, State.WITHDRAWN):
            view = await daemon.imported.import_psbt(TAKEN_BACK.to_base64(), WALLET)
            await daemon.imported.withdraw(view.psbt_id, WALLET)
        if not _of(daemon.journal, OVER, State.EXPIRED):
            await daemon.imported.import_psbt(OVER.to_base64(), WALLET)
            with a_day_later(daemon):
                await until(lambda: bool(_of(daemon.journal, OVER, State.EXPIRED)))
        while (await _asked_for(daemon)).signed_psbt is None:
            (record,) = _of(daemon.journal, SIGNED)
            await _until_at_rest(daemon, record.psbt_id)
            if daemon.journal.record(record.psbt_id).state in ASKING:
                add_one(folder / "yes")
                await approve(daemon, record.psbt_id)


async def _asked_for(daemon: Daemon):
    return await daemon.imported.import_psbt(SIGNED.to_base64(), WALLET)


@contextmanager
def a_day_later(daemon: Daemon):
    real = daemon.journal._now
    daemon.journal._now = lambda: real() + timedelta(seconds=LIVES_SECONDS)
    try:
        yield
    finally:
        daemon.journal._now = real


def _of(journal: Journal, psbt: Psbt, *states: State) -> list[Record]:
    found = (r for r in journal.records() if r.identity == psbt.tx.txid)
    return [record for record in found if not states or record.state in states]


async def _until_at_rest(daemon: Daemon, psbt_id: str) -> None:
    await until(lambda: daemon.journal.record(psbt_id).state in (*ASKING, State.HANDED_OVER))


def imported_faults(folder: Path, point: str) -> list[str]:
    wrong = list(asked_too_often(folder, point))
    if FakePlatform(folder).told():
        wrong.append("the platform was told of it")
    with read_journal(folder) as journal:
        wrong += _unkept(journal)
    return [*wrong, *common_faults(folder, ())]


def _unkept(journal: Journal) -> list[str]:
    records = _of(journal, SIGNED)
    if [record.state for record in records] != [State.HANDED_OVER]:
        return [f"what was imported is {[record.state for record in records]}"]
    stored = records[0].signature
    if stored is None or not signer_progress(Psbt.parse(stored.psbt), VAULT, ALICE.fingerprint).is_complete:
        return ["the signature is not there"]
    return [
        f"{name} is {[r.state.value for r in _of(journal, psbt)]}"
        for name, psbt, end in (("taken back", TAKEN_BACK, State.WITHDRAWN), ("over", OVER, State.EXPIRED))
        if [record.state for record in _of(journal, psbt)] != [end]
    ]


IMPORTED = Story(
    "imported",
    prepare_payment,
    live_imported,
    imported_faults,
    frozenset(
        f"{where}:{side}:{what}"
        for where, whats in (
            ("journal", ("Approved", "DeviceFound", "DeviceReturned")),
            ("device", ("sign",)),
        )
        for side in ("before", "after")
        for what in whats
    ),
)


# --- a device without a cable: one is exported, signed and answered; one declined, never answered -----------

DECLINED = "p-2"
PROPOSALS = {PSBT_ID: snapshot_of(spend()), DECLINED: snapshot_of(bill(), DECLINED)}


async def live_airgap(folder: Path, fault: FaultPoint) -> None:
    """A person with a card, whose files outlive the daemon."""
    platform = LastingPlatform(folder, dict(PROPOSALS), fault=fault)
    async with lasting(folder, platform, FakeBridge(state=DeviceState.ABSENT)) as daemon:
        for psbt_id in PROPOSALS:
            await _to_the_card(folder, daemon, psbt_id, fault)
        if state_of(daemon, DECLINED) is State.EXPORTED:
            await daemon.decline(DECLINED, "not ours")
        if state_of(daemon, PSBT_ID) is State.EXPORTED:
            signed = ALICE.sign(Psbt.parse(_card(folder, PSBT_ID).read_bytes())).to_bytes()
            await airgap.answer(daemon, base64.b64encode(signed).decode(), TERMINAL)
        await until(lambda: _over(daemon.journal))


def _card(folder: Path, psbt_id: str) -> Path:
    return folder / f"{psbt_id}.psbt"


async def _to_the_card(folder: Path, daemon: Daemon, psbt_id: str, fault: FaultPoint) -> None:
    await until(lambda: state_of(daemon, psbt_id) is not None)
    if state_of(daemon, psbt_id) in ASKING:
        add_one(folder / f"yes-{psbt_id}")
        await approve(daemon, psbt_id)
    if _card(folder, psbt_id).exists():
        return
    if state_of(daemon, psbt_id) in (State.WAITING_DEVICE, State.EXPORTED):
        given = await airgap.export(daemon, psbt_id, TERMINAL)
        fault("card:before:write")
        write_private(_card(folder, psbt_id), base64.b64decode(given.psbt))
        fault("card:after:write")


def _over(journal: Journal) -> bool:
    found = {record.psbt_id: record for record in journal.records()}
    declined = found[DECLINED]
    told = declined.decline is not None and declined.decline.delivered
    return told and (found[PSBT_ID].state, declined.state) == (State.SUBMITTED, State.DECLINED)


def airgap_faults(folder: Path, point: str) -> list[str]:
    wrong, platform = [], FakePlatform(folder)
    if count(folder / "prompts"):
        wrong.append("a device was asked")
    for psbt_id in PROPOSALS:
        asked = count(folder / f"yes-{psbt_id}")
        if asked > (2 if point == "journal:before:Approved" else 1):
            wrong.append(f"the person was asked {asked} times about {psbt_id}")
    if not platform.signatures(PSBT_ID) or platform.signatures(DECLINED):
        wrong.append("the signature never arrived, or one did that was declined")
    with read_journal(folder) as journal:
        if not _over(journal):
            wrong.append(f"the proposals are {[record.state.value for record in journal.records()]}")
        wrong += _forgotten(folder, journal)
    return [*wrong, *common_faults(folder, tuple(PROPOSALS))]


def _forgotten(folder: Path, journal: Journal) -> list[str]:
    """Whatever is on the card was recorded before it was exported, and stays recorded."""
    wrong = []
    for psbt_id in PROPOSALS:
        record = journal.record(psbt_id)
        if _card(folder, psbt_id).exists() and record.exported is None:
            wrong.append(f"{psbt_id} was given out and is not recorded")
        try:
            journal.decide(psbt_id, events.Exported())
        except IllegalEvent:
            continue
        wrong.append(f"{psbt_id} is given out once more after it was over")
    kinds = [entry.note.kind for entry in journal.audit()]
    return wrong if kinds.count("exported") == len(PROPOSALS) else [*wrong, "the chain tells another story"]


AIRGAP = Story("airgap", prepare_payment, live_airgap, airgap_faults)
