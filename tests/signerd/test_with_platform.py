"""A daemon with a virtual device behind real HWI, at a real platform: keys that run out, that others used
before, that are replaced; and one from an old backup, where what was signed since is not paid again.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import update

from custody.server.store.models import KeyRow
from firmware_bridge import Family
from multisig import Network, multisig_account_path
from signerd.backup.container import Backup, unpack
from signerd.backup.restoring import restore
from signerd.backup.writing import make_backup
from signerd.core.audit import first_fault
from signerd.core.keys import ALL_ACCOUNTS, FEW_ACCOUNTS
from signerd.core.states import State
from signerd.daemon.service import Daemon
from signerd.daemon.vaults import vaults
from signerd.errors import NeedsAcknowledgement, NotCaughtUp, PlatformRefused
from signerd.journal.chain import utc_now
from tests.conformance.rigs import make_rig, short_folder
from tests.support.backups import CONFIG
from tests.support.custody import Desk, ok, open_organisation, refused
from tests.support.daemons import MemoryStore, until, until_state
from tests.support.platform import register_key, seed
from tests.support.real_signer import pin, register, signer

pytestmark = pytest.mark.anyio
PAID = 1_234_567


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with open_organisation(tmp_path / "platform", ("carol",)) as made:
        yield made


async def approve(daemon: Daemon, psbt_id: str, paid: int = PAID) -> None:
    await until_state(daemon, psbt_id, State.WAITING_PERSON)
    shown = await daemon.proposal(psbt_id)
    assert shown.money is not None
    assert shown.money.paid_sats == paid
    assert {check.outcome for check in shown.checks} == {"allow"}
    await daemon.approve(psbt_id, shown.digest)


@pytest.mark.slow("a hundred vaults")
async def test_a_workspace_of_a_hundred_vaults(desk: Desk) -> None:
    """Before a signer's keys run out the person is asked once, told why, and approves once for many; the
    paths are the bound.
    """
    everyone = [{"account": number, "xpub": carols_xpub(desk, number)} for number in range(ALL_ACCOUNTS)]
    ok(register_key(desk.signers["carol"], desk.devices["carol"], vault_accounts=everyone))
    with short_folder() as name:
        trezor = make_rig(Family.TREZOR, Path(name), seed=desk.devices["alice"])
        approvals: list[str] = []
        trezor.panel.watch(
            lambda event: approvals.append(event.prompt.kind) if event.happening == "approved" else None
        )
        async with signer(desk, "alice", trezor, Path(name)) as alice:
            await register(alice)
            members = [desk.user_ids[name] for name in ("alice", "carol")]
            registrations, asked_with_free = 1, []
            for number in range(ALL_ACCOUNTS):
                desk.vault = ok(desk.create_vault(f"Vault {number}", signers=members))
                await alice.keys.read_now()
                advice = [note for note in (await alice.status()).notes if "run out" in note]
                if advice:
                    (key,) = await alice.platform.keys()
                    asked_with_free.append(key.free_accounts)
                    await register(alice)
                    await alice.keys.read_now()
                    registrations += 1
                    assert not [note for note in (await alice.status()).notes if "run out" in note]
            assert registrations == 4
            assert asked_with_free == [FEW_ACCOUNTS] * 3
            assert approvals.count("sign-message-address") == registrations
            told = [line.text for line in alice.feed.since(0, "registration") if "run out" in line.text]
            assert len(told) == 3
            await pin(alice, desk.vault["id"])
            refused(desk.create_vault("One more", signers=members), 409, "KEY_ACCOUNTS_EXHAUSTED")

        elsewhere = make_rig(Family.TREZOR, Path(name) / "elsewhere", seed=desk.devices["alice"])
        (Path(name) / "other").mkdir()
        async with signer(desk, "alice", elsewhere, Path(name) / "other") as other:
            await register(other)
            await pin(other, desk.vault["id"])


async def test_a_device_that_signed_nothing_for_long_is_checked_by_registering_its_keys_once_more(
    desk: Desk,
) -> None:
    ok(desk.tell("update-workspace", key_check_months=1))
    with short_folder() as name:
        trezor = make_rig(Family.TREZOR, Path(name), seed=desk.devices["alice"])
        async with signer(desk, "alice", trezor, Path(name)) as alice:
            await register(alice)
            members = [desk.user_ids[name] for name in ("alice", "carol")]
            desk.vault = ok(desk.create_vault(signers=members))
            with desk.store.write() as db:
                long_ago = desk.world.clock() - timedelta(days=31)
                db.execute(update(KeyRow).values(last_signed_at=long_ago))
            await alice.keys.read_now()
            assert [note for note in (await alice.status()).notes if "last signed on" in note]
            keys = alice.journal.own_keys()
            await register(alice)
            await alice.keys.read_now()
            assert not [note for note in (await alice.status()).notes if "last signed on" in note]
            assert (alice.journal.own_keys(), desk.world.audit_actions()[-1]) == (keys, "KEY_CHECKED")


def carols_xpub(desk: Desk, account: int) -> str:
    return str(desk.devices["carol"].xpub(multisig_account_path(Network.REGTEST, account), Network.REGTEST))


async def test_s27_what_two_others_signed_before_this_signers_daemon_ever_ran(desk: Desk) -> None:
    """2-of-4: Carol and Dora pay three bills; then Alice, whose daemon starts for the first time, is asked to
    pay each again.
    """
    desk.world.member(desk.workspace_id, "dora@example.org")
    desk.devices["dora"] = seed(4)
    for name in ("alice", "bob", "carol", "dora"):
        desk.signers[name] = desk.world.as_user(f"{name}@example.org")
        desk.user_ids[name] = int(ok(desk.signers[name].get("/api/v1/get-user-info"))["UUID"])
        if name != "carol":
            ok(register_key(desk.signers[name], desk.devices[name]))
    desk.vault = ok(desk.create_vault(signers=[desk.user_ids[name] for name in desk.signers]))
    desk.deposit(*[10_000_000] * 8)
    first = {}
    for amount, follows in ((1_000_001, "CONFIRMED"), (1_000_002, "BROADCASTING"), (1_000_003, "SIGNED")):
        first[amount] = psbt_id = ok(desk.propose(amount))["psbt_id"]
        for name in ("carol", "dora"):
            desk.approve(name, psbt_id)
        if follows != "SIGNED":
            desk.settle()
        if follows == "CONFIRMED":
            desk.chain.mine(1)
            desk.settle()
        assert desk.proposal(psbt_id)["status"] == follows
    again = {amount: ok(desk.propose(amount))["psbt_id"] for amount in (*first, PAID)}
    with short_folder() as name:
        trezor = make_rig(Family.TREZOR, Path(name), seed=desk.devices["alice"])
        async with signer(desk, "alice", trezor, Path(name)) as alice:
            await register(alice)
            await pin(alice, desk.vault["id"])
            for amount, psbt_id in again.items():
                await until_state(alice, psbt_id, State.WAITING_PERSON)
                shown = await alice.proposal(psbt_id)
                assert set(shown.to_acknowledge) == ({"signed-by-others"} if amount in first else set())
                (check,) = [check for check in shown.checks if check.name == "signed-by-others"]
                assert check.figures.get("proposals") == first.get(amount)
            with pytest.raises(NeedsAcknowledgement):
                await alice.approve(again[1_000_001], (await alice.proposal(again[1_000_001])).digest)
            assert {line.psbt_id for line in await alice.proposals(ended=True)} == set(again.values())
            await _hears_who_declined_and_who_cancelled(desk, alice, again[PAID])


async def _hears_who_declined_and_who_cancelled(desk: Desk, alice: Daemon, psbt_id: str) -> None:
    ok(desk.decline("bob", psbt_id, "Not our bill"))
    await until(lambda: bool(alice.journal.record(psbt_id).snapshot.declines))
    shown = await alice.proposal(psbt_id)
    assert [(one.reason, one.at is None) for one in shown.declines] == [("Not our bill", False)]
    # Two of four are needed.
    assert "2 other signers are enough" in shown.on_decline
    ok(desk.tell("cancel-psbt", psbt_id=psbt_id, reason="Paid by card"))
    await until_state(alice, psbt_id, State.WITHDRAWN)
    assert (await alice.proposal(psbt_id)).reason.endswith("cancelled. Why, by its word: Paid by card")


async def test_a_devices_key_is_replaced_and_the_former_one_comes_back(desk: Desk) -> None:
    """What waited for it is not waited for any more; a vault with the new key is signed for at once. Found
    again and registered again it may move coins on, and nothing else (P47).
    """
    with short_folder() as name:
        folder, store = Path(name), MemoryStore()
        first = make_rig(Family.TREZOR, folder, seed=seed(1))
        second = make_rig(Family.TREZOR, folder, seed=seed(4))
        async with signer(desk, "alice", first, folder, store) as alice:
            await register(alice)
            members = [desk.user_ids[name] for name in ("alice", "carol")]
            old = desk.vault = ok(desk.create_vault(m=1, signers=members))
            await pin(alice, old["id"])
            desk.deposit(50_000_000, 40_000_000)
            leaving = ok(desk.propose(PAID))["psbt_id"]
            await until_state(alice, leaving, State.WAITING_PERSON)
            former = (await alice.status()).fingerprint

        async with signer(desk, "alice", second, folder, store) as alice:
            # The device is gone, its approval is given nevertheless, and waits.
            await alice.approve(leaving, (await alice.proposal(leaving)).digest)
            await until_state(alice, leaving, State.WAITING_DEVICE)
            preview = await alice.preview_registration()
            with pytest.raises(PlatformRefused) as refused:
                await alice.register(preview.device_id, preview.digest)
            assert "--replace" in refused.value.hint
            registered = await alice.register(preview.device_id, preview.digest, replace=True)
            assert registered.fingerprint != former
            await until_state(alice, leaving, State.REFUSED)
            assert "registered key of your device" in (await alice.proposal(leaving)).reason
            status = await alice.status()
            assert status.fingerprint == registered.fingerprint
            assert any("was replaced" in note for note in status.notes)
            (kept,) = await vaults(alice)
            assert (kept.pinned, kept.first_address) == (True, old["address"])
            assert "was replaced" in (kept.fault or "")

            desk.vault = new = ok(desk.create_vault("New", m=1, signers=members))
            await pin(alice, new["id"])
            desk.deposit(50_000_000, to=new["address"])
            psbt_id = ok(desk.propose(PAID + 1))["psbt_id"]
            await approve(alice, psbt_id, paid=PAID + 1)
            await until_state(alice, psbt_id, State.SUBMITTED, State.BROADCAST)
            desk.vault = old
            moving = ok(desk.propose(30_000_000, recipients=[new["address"]]))["psbt_id"]
            await until_state(alice, moving, State.REFUSED)

        async with signer(desk, "alice", first, folder, store) as alice:
            (device,) = await alice.devices()
            assert "taken its place" in (device.detail or "")
            await register(alice, replace=True)
            (device,) = await alice.devices()
            assert device.detail is None
            for psbt_id in (moving, leaving):
                await until_state(alice, psbt_id, State.WAITING_PERSON)
                shown = await alice.proposal(psbt_id)
                await alice.approve(psbt_id, shown.digest, frozenset(shown.to_acknowledge))
            # The vault's place is of the key that was superseded.
            await until_state(alice, leaving, State.QUARANTINED)
            await until_state(alice, moving, State.SUBMITTED, State.BROADCAST)
            assert (await alice.verify_audit()).fault is None


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
