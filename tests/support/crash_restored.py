"""The story of a daemon restored from an old backup, for the crash harness: it recovers later signatures."""

from dataclasses import replace
from pathlib import Path

from signerd.core.states import State
from signerd.journal.chain import utc_now
from signerd.runtime import FaultPoint
from tests.support.crash_stories import (
    ASKING,
    PSBT_ID,
    FileMemory,
    LastingPlatform,
    Story,
    add_one,
    payment_faults,
    prepare_payment,
    read_journal,
)
from tests.support.daemons import approve, daemon_at, state_of, until
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
    bridge = FakeBridge(prompts=folder / "prompts")
    store = FileMemory(folder / "session")
    async with daemon_at(folder / "state", platform, bridge, store=store, fault=fault) as daemon:
        await until(lambda: not daemon.journal.behind())
        while state_of(daemon, PSBT_ID) is not State.SUBMITTED:
            await until(lambda: state_of(daemon, PSBT_ID) in (*ASKING, State.SUBMITTED))
            if state_of(daemon, PSBT_ID) in ASKING:
                add_one(folder / "yes")
                await approve(daemon, PSBT_ID)


def restored_faults(folder: Path, point: str) -> list[str]:
    with read_journal(folder) as journal:
        kinds = [(entry.note.kind, entry.note.subject) for entry in journal.audit()]
        recalled = kinds.count(("recalled", FORGOTTEN))
        stored = journal.record(FORGOTTEN).signature
    known = recalled == 1 and stored is not None and stored.psbt == SIGNED.psbt
    wrong = [] if known else [f"what was forgotten was recalled {recalled} times"]
    return [*wrong, *payment_faults(folder, point)]


RESTORED = Story("restored", prepare_restored, live_restored, restored_faults)
