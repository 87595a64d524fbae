"""The story of imported PSBTs, for the crash harness: one is withdrawn, one has expired,
one is signed and handed out.
"""

from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from multisig import Psbt, signer_progress
from signerd.callers import GRANTABLE, CallerKind, LoopbackCaller
from signerd.core.signing import LIVES_SECONDS
from signerd.core.states import State
from signerd.core.values import Record
from signerd.daemon.service import Daemon
from signerd.journal import Journal
from signerd.runtime import FaultPoint
from tests.support.bills import bill
from tests.support.crash_stories import (
    ASKING,
    LastingPlatform,
    Story,
    add_one,
    asked_too_often,
    common_faults,
    lasting,
    prepare_payment,
    read_journal,
)
from tests.support.daemons import approve, until
from tests.support.desk import VAULT
from tests.support.fake_bridge import FakeBridge
from tests.support.fake_platform import FakePlatform
from tests.support.wallets import ALICE

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
