"""A daemon from an old backup at the real platform: what was signed after the backup is not paid again."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from firmware_bridge import Family
from signerd.backup.container import Backup, unpack
from signerd.backup.restoring import restore
from signerd.backup.writing import make_backup
from signerd.core.audit import first_fault
from signerd.core.states import State
from signerd.daemon.service import Daemon
from signerd.errors import NeedsAcknowledgement, NotCaughtUp
from signerd.journal.chain import utc_now
from tests.conformance.rigs import make_rig, short_folder
from tests.support.backups import CONFIG
from tests.support.custody import Desk, ok, open_organisation
from tests.support.daemons import until, until_state
from tests.support.real_signer import pin, register, signer

pytestmark = pytest.mark.anyio
PAID = 1_234_567


@pytest.fixture
def desk(tmp_path):
    with open_organisation(tmp_path / "platform", ("carol",)) as made:
        yield made


@pytest.fixture
def folder():
    with short_folder() as name:
        yield Path(name)


@asynccontextmanager
async def alice_at(desk: Desk, folder: Path, at: str, **options: bool) -> AsyncIterator[Daemon]:
    rig = make_rig(Family.TREZOR, folder, seed=desk.devices["alice"])
    async with signer(desk, "alice", rig, folder, at=at, **options) as daemon:
        yield daemon


async def pinned(desk: Desk, alice: Daemon) -> None:
    await register(alice)
    desk.vault = ok(desk.create_vault(signers=[desk.user_ids[name] for name in ("alice", "carol")]))
    await pin(alice, desk.vault["id"])
    for _ in range(3):
        desk.deposit(50_000_000)


def backup_of(state: Path) -> Backup:
    (state / "config.toml").write_text(CONFIG)
    return unpack(make_backup(state, utc_now())[1])


async def sign(daemon: Daemon, psbt_id: str) -> None:
    await until_state(daemon, psbt_id, State.WAITING_PERSON)
    shown = await daemon.proposal(psbt_id)
    await daemon.approve(psbt_id, shown.digest, frozenset(shown.to_acknowledge))
    await until_state(daemon, psbt_id, State.SUBMITTED)


async def test_the_second_payment_is_held_by_what_was_signed_after_the_backup(desk, folder):
    async with alice_at(desk, folder, "alice") as alice:
        await pinned(desk, alice)
        waiting = ok(desk.propose(PAID + 1))["psbt_id"]
        await until_state(alice, waiting, State.WAITING_PERSON)
        old = backup_of(folder / "alice")
        # One that the backup knows as waiting, and one that it never saw.
        await sign(alice, waiting)
        unseen = ok(desk.propose(PAID))["psbt_id"]
        await sign(alice, unseen)

    assert restore(old, folder / "new", lambda _found: True)
    async with alice_at(desk, folder, "new", signs_in=False) as restored:
        shown = await restored.proposal(waiting)
        with pytest.raises(NotCaughtUp):
            await restored.approve(waiting, shown.digest)
        assert any("Restored from the backup" in note for note in (await restored.status()).notes)
    async with alice_at(desk, folder, "new") as restored:
        await until(lambda: not restored.journal.behind())
        for psbt_id in (waiting, unseen):
            assert restored.journal.record(psbt_id).state is State.SUBMITTED
        again = ok(desk.propose(PAID))["psbt_id"]
        await until_state(restored, again, State.WAITING_PERSON)
        shown = await restored.proposal(again)
        assert "paid-twice" in shown.to_acknowledge
        with pytest.raises(NeedsAcknowledgement):
            await restored.approve(again, shown.digest)
        assert {spent.psbt_id for spent in restored.journal.spent()} == {waiting, unseen}
        assert first_fault(restored.journal.audit()) is None
        signers = desk.proposal(unseen)["signers"]
        assert [signer["is_signed"] for signer in signers].count(True) == 1
