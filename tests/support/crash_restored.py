"""The story of a daemon restored from an old backup, for the crash harness: it recovers later signatures."""

from dataclasses import replace
from pathlib import Path

from signerd.journal.chain import utc_now
from signerd.runtime import FaultPoint
from tests.support.crash_stories import (
    PSBT_ID,
    LastingPlatform,
    Story,
    lasting,
    payment_faults,
    prepare_payment,
    read_journal,
    sign_what_is_asked,
)
from tests.support.daemons import until
from tests.support.desk import signed_by, snapshot_of, spend
from tests.support.fake_bridge import FakeBridge
from tests.support.payments import spend_of
from tests.support.wallets import ALICE

FORGOTTEN = "p-9"
_SHOWN = snapshot_of(spend_of([9], (("cafe", 20_000),)), FORGOTTEN, collected=1)
SIGNED = replace(_SHOWN, psbt=signed_by(ALICE, _SHOWN))


def prepare_restored(folder: Path) -> None:
    prepare_payment(folder)
    with read_journal(folder) as journal:
        journal.restore(utc_now())


async def live_restored(folder: Path, fault: FaultPoint) -> None:
    """What was signed after the backup is on the platform's list; then a new proposal is approved."""
    shown = {FORGOTTEN: SIGNED, PSBT_ID: snapshot_of(spend())}
    platform = LastingPlatform(folder, shown, not_ours={FORGOTTEN}, fault=fault)
    async with lasting(folder, platform, FakeBridge()) as daemon:
        await until(lambda: not daemon.journal.behind())
        await sign_what_is_asked(daemon, folder)


def restored_faults(folder: Path, point: str) -> list[str]:
    with read_journal(folder) as journal:
        kinds = [(entry.note.kind, entry.note.subject) for entry in journal.audit()]
        recalled = kinds.count(("recalled", FORGOTTEN))
        stored = journal.record(FORGOTTEN).signature
    known = recalled == 1 and stored is not None and stored.psbt == SIGNED.psbt
    wrong = [] if known else [f"what was forgotten was recalled {recalled} times"]
    return [*wrong, *payment_faults(folder, point)]


RESTORED = Story("restored", prepare_restored, live_restored, restored_faults)
