"""A vault of three signers who all sign: one of them has a Coldcard that is never plugged in. The real
platform and its embedded chain, real daemons, and virtual devices.
"""

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from firmware_bridge import Family
from firmware_bridge.airgap import CodeSeries, Content, series_of
from signerd.callers import TERMINAL
from signerd.core.states import State
from signerd.daemon import airgap, airgap_setup, vaults
from signerd.daemon.airgap import carried_psbt
from signerd.daemon.service import Daemon
from tests.conformance.rigs import make_rig, short_folder
from tests.support.airgap import CardDevice
from tests.support.custody import Desk, ok, open_organisation
from tests.support.daemons import unhurried_sleep, until, until_state
from tests.support.real_signer import pin, register, signer

pytestmark = pytest.mark.anyio
NAMES = ("alice", "bob", "carol")
PAID = 1_234_567


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with open_organisation(tmp_path / "platform", ()) as opened:
        yield opened


async def registers(daemon: Daemon, device: CardDevice) -> None:
    exports = (json.dumps(device.export_generic()),)
    preview = await airgap_setup.preview(daemon, exports)
    assert preview.fingerprint == str(device.seed.fingerprint)
    asked = await airgap_setup.challenge(daemon, exports, preview.digest)
    signed = device.sign_text_file(asked.file)
    await airgap_setup.register(daemon, exports, preview.digest, asked.challenge, signed, replace=False)


async def pins(daemon: Daemon, device: CardDevice, vault_id: str) -> str:
    await until(lambda: daemon.follower.reachable)
    (vault,) = [seen for seen in await vaults.vaults(daemon) if seen.vault_id == vault_id]
    assert vault.verification_code is not None
    given = await airgap_setup.enrolment(daemon, vault_id, "coldcard")
    found = "same" if device.enrol(given.text.encode()) == given.first_address else "another"
    pinned = await vaults.pin(daemon, vault_id, vault.verification_code, airgapped=found)
    assert pinned.address_shown
    return vault.verification_code


async def approves(daemon: Daemon, psbt_id: str, paid: int = PAID) -> None:
    await until_state(daemon, psbt_id, State.WAITING_PERSON)
    shown = await daemon.proposal(psbt_id)
    assert shown.money is not None
    assert shown.money.paid_sats == paid
    assert {check.outcome for check in shown.checks} == {"allow"}
    await daemon.approve(psbt_id, shown.digest)


async def signs(daemon: Daemon, device: CardDevice, psbt_id: str) -> None:
    await approves(daemon, psbt_id)
    given = base64.b64decode((await airgap.export(daemon, psbt_id, TERMINAL)).psbt)
    assert daemon.journal.record(psbt_id).state is State.EXPORTED
    shown = device.sign_codes(series_of(given, Content.PSBT, CodeSeries.BBQR, 758))
    await airgap.answer(daemon, carried_psbt("\n".join(shown).encode()), TERMINAL)


async def a_refused_signature_waits_for_the_freezes_end(desk: Desk, daemon: Daemon) -> None:
    """A member freezes the vault while the device is asked. Nothing is signed twice, and nothing lost."""
    psbt_id = ok(desk.propose(PAID + 1))["psbt_id"]
    vault = {"workspace_id": desk.workspace_id, "vault_id": desk.vault["id"]}
    ok(desk.admin.post("/api/v1/freeze-vault", vault))
    await approves(daemon, psbt_id, paid=PAID + 1)
    await until(lambda: "is frozen" in daemon.journal.record(psbt_id).reason)
    signed = daemon.journal.record(psbt_id).signature
    assert signed is not None
    assert desk.proposal(psbt_id)["collected_signatures"] == 0
    for name in ("bob", "carol"):
        ok(desk.world.as_user(f"{name}@example.org").post("/api/v1/unfreeze-vault", vault))
    await until_state(daemon, psbt_id, State.SUBMITTED)
    assert desk.proposal(psbt_id)["collected_signatures"] == 1
    assert daemon.journal.record(psbt_id).signature == signed


async def test_three_of_three_with_one_that_has_no_cable(desk: Desk) -> None:
    device = CardDevice(desk.devices["alice"])
    with short_folder() as name:
        folder = Path(name)
        trezor = make_rig(Family.TREZOR, folder, seed=desk.devices["bob"])
        ledger = make_rig(Family.LEDGER, folder, seed=desk.devices["carol"])
        async with (
            signer(desk, "alice", None, folder) as alice,
            signer(desk, "bob", trezor, folder, sleep=unhurried_sleep) as bob,
            signer(desk, "carol", ledger, folder) as carol,
        ):
            await registers(alice, device)
            await register(bob)
            await register(carol)
            desk.vault = ok(desk.create_vault(m=3, signers=[desk.user_ids[name] for name in NAMES]))
            vault_id = desk.vault["id"]
            code = await pins(alice, device, vault_id)
            assert [await pin(bob, vault_id), await pin(carol, vault_id)] == [code, code]
            desk.deposit(50_000_000, 40_000_000)
            psbt_id = ok(desk.propose(PAID))["psbt_id"]

            for number, daemon in enumerate((bob, carol), start=1):
                await approves(daemon, psbt_id)
                await until_state(daemon, psbt_id, State.SUBMITTED, State.BROADCAST)
                assert desk.proposal(psbt_id)["collected_signatures"] == number
            await until(lambda: any(each.snapshot.collected == 2 for each in alice.journal.records()))
            await signs(alice, device, psbt_id)
            await until_state(alice, psbt_id, State.SUBMITTED, State.BROADCAST)

            desk.settle()
            desk.chain.mine(1)
            desk.settle()
            for daemon in (alice, bob, carol):
                await until_state(daemon, psbt_id, State.CONFIRMED)
            await a_refused_signature_waits_for_the_freezes_end(desk, bob)
            for daemon in (alice, bob, carol):
                assert (await daemon.verify_audit()).fault is None
