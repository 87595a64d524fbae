"""The story of a device without a cable, for the crash harness: one proposal is exported, signed and
answered; another is exported, declined, and never answered.
"""

import base64
from pathlib import Path

from custody.common.private_files import write_private
from firmware_bridge import DeviceState
from multisig import Psbt
from signerd.callers import TERMINAL
from signerd.core import events
from signerd.core.states import State
from signerd.daemon import airgap
from signerd.daemon.service import Daemon
from signerd.errors import IllegalEvent
from signerd.journal import Journal
from signerd.runtime import FaultPoint
from tests.support.bills import bill
from tests.support.crash_stories import (
    ASKING,
    PSBT_ID,
    LastingPlatform,
    Story,
    add_one,
    common_faults,
    count,
    lasting,
    prepare_payment,
    read_journal,
)
from tests.support.daemons import approve, state_of, until
from tests.support.desk import snapshot_of, spend
from tests.support.fake_bridge import FakeBridge
from tests.support.fake_platform import FakePlatform
from tests.support.wallets import ALICE

DECLINED = "p-2"
PROPOSALS = {PSBT_ID: snapshot_of(spend()), DECLINED: snapshot_of(bill(), DECLINED)}


async def live_airgap(folder: Path, fault: FaultPoint) -> None:
    """A person with a card, whose files outlive the daemon."""
    platform = LastingPlatform(folder, dict(PROPOSALS), fault=fault)
    async with lasting(folder, platform, FakeBridge(state=DeviceState.ABSENT)) as daemon:
        for psbt_id in PROPOSALS:
            await _to_the_card(folder, daemon, psbt_id, fault)
        if state_of(daemon, DECLINED) is State.EXPORTED:
            await daemon.reject(DECLINED, "not ours")
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
