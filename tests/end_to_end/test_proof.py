"""A proof of control, from the request to the file that an auditor checks: the real platform, the real daemon
and a virtual device behind HWI; and a device that cannot sign one.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from firmware_bridge import Family
from signerd.core.states import State
from tests.conformance.rigs import make_rig, short_folder
from tests.support.custody import Desk, ok, open_desk
from tests.support.daemons import until_state
from tests.support.operator import custody
from tests.support.real_signer import pin, register, signer

pytestmark = pytest.mark.anyio


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with open_desk(tmp_path / "platform") as opened:
        opened.deposit(40_000, 70_000)
        yield opened


def asked(desk: Desk) -> str:
    return str(ok(desk.of_vault("create-proof", with_coins=True, message="Audit of 2026"))["psbt_id"])


async def test_an_auditor_is_given_what_a_device_showed_and_signed(desk: Desk, tmp_path: Path) -> None:
    with short_folder() as name:
        folder = Path(name)
        rig = make_rig(Family.COLDCARD, folder, seed=desk.devices["alice"])
        async with signer(desk, "alice", rig, folder) as alice:
            await register(alice)
            await pin(alice, desk.vault["id"])
            psbt_id = asked(desk)
            await until_state(alice, psbt_id, State.WAITING_PERSON)
            shown = await alice.proposal(psbt_id)
            assert {check.outcome for check in shown.checks} == {"allow"}
            (told,) = [check.sentence for check in shown.checks if check.name == "proof"]
            assert "“Audit of 2026 (block " in told
            assert "2 coins" in told
            labels = [figure.label for screen in shown.screens for figure in screen.figures]
            assert labels == ["Message", "Amount", "Address"]
            await alice.approve(psbt_id, shown.digest)
            await until_state(alice, psbt_id, State.SUBMITTED)
            desk.approve("bob", psbt_id)
            await until_state(alice, psbt_id, State.CONFIRMED)
            assert (await alice.verify_audit()).fault is None
    proof = desk.admin.get("/api/v1/proof", workspace_id=desk.workspace_id, psbt_id=psbt_id)
    (tmp_path / "proof.json").write_bytes(proof.content)
    said = custody("proof", "verify", tmp_path / "proof.json")
    assert said.exit_code == 0, said.output
    assert "2 coins signed for, 0.00110000 BTC (110,000 sats)" in said.output


async def test_whose_device_cannot_is_told_before_they_are_asked(desk: Desk) -> None:
    with short_folder() as name:
        folder = Path(name)
        rig = make_rig(Family.TREZOR, folder, seed=desk.devices["alice"])
        async with signer(desk, "alice", rig, folder) as alice:
            await register(alice)
            await pin(alice, desk.vault["id"])
            psbt_id = asked(desk)
            await until_state(alice, psbt_id, State.REFUSED)
            assert "signs no such message" in (await alice.proposal(psbt_id)).reason
