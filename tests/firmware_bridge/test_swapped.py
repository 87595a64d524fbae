"""One endpoint, one device after the other (S18), and a store of registrations that is full."""

import asyncio

import pytest

from firmware_bridge import Disconnected, Family, NotEnrolled, RegistrationsInMemory
from firmware_bridge.model import Sighting
from multisig import signer_progress
from tests.support import rigs, wallets
from tests.support.makes import NAME
from tests.support.rigs import QUICK, SEEDS, bridged, make_fake
from tests.support.scripted import COLDCARD, SIGNED, SPEND, VAULT, bridge_answering, who
from tests.support.wallets import ALICE, BOB

pytestmark = pytest.mark.anyio

OURS = rigs.make_vault()


def swap_after(swapped_after, bridge, record):
    """It is noticed just as the answer comes: what was to be aborted has ended already."""
    answer = record.lane.call

    async def answer_then_swap(op, args=None, **options):
        said = await answer(op, args, **options)
        if op == swapped_after:
            next_one = Sighting(record.device.endpoint, "Another", incarnation="2")
            bridge._roster._notice(record.device.id, next_one)
        return said

    record.lane.call = answer_then_swap


async def test_s18_what_is_plugged_in_between_two_calls_is_not_asked_for_the_rest():
    bridge, device, script = await bridge_answering(who(ALICE), ("sign", SIGNED))
    (record,) = bridge._roster.records()
    swap_after("fingerprint", bridge, record)
    with pytest.raises(Disconnected):
        await bridge.sign(device, SPEND, VAULT)
    assert [op for op, _answer in script.answers] == ["sign"]
    assert record.device.fingerprint is None


async def test_a_password_is_not_kept_for_what_is_plugged_in_next():
    told = {"fingerprint": str(ALICE.fingerprint), "session": "a password"}
    bridge, device, _script = await bridge_answering(("unlock", told))
    (record,) = bridge._roster.records()
    swap_after("unlock", bridge, record)

    async def ask(_question):
        return "a password"

    with pytest.raises(Disconnected):
        await bridge.unlock(device, ask)
    assert record.lane.session is None


async def test_what_one_device_does_not_know_is_not_asked_anew_of_another_in_its_place():
    bridge, device, script = await bridge_answering(
        who(ALICE), ("sign", NotEnrolled()), who(BOB), ("enrol", None), endpoint=COLDCARD
    )
    with pytest.raises(NotEnrolled):
        await bridge.sign(device, SPEND, VAULT)
    (record,) = bridge._roster.records()
    bridge._roster._lose(record)
    await bridge._roster.look()
    await bridge.enrol(device, VAULT, NAME)
    assert script.told[-1]["again"] is False


class Full(RegistrationsInMemory):
    """Keeps them in memory, and cannot write them down."""

    def keep(self, registration):
        super().keep(registration)
        raise OSError(28, "No space left on device")

    def forget(self, registration):
        super().forget(registration)
        raise OSError(28, "No space left on device")


async def test_a_full_disk_takes_no_enrolment_back_that_a_person_has_approved(caplog):
    rig = make_fake(Family.LEDGER)
    async with asyncio.timeout(QUICK.person), bridged(rig, registrations=Full()) as (bridge, (device,)):
        await bridge.enrol(device.id, OURS, NAME)
        signed = await bridge.sign(device.id, wallets.make_spend(OURS), OURS)
        assert signer_progress(signed, OURS, SEEDS[0].fingerprint).is_complete
    assert "could not be stored" in caplog.text


async def test_a_full_disk_hides_no_outcome():
    rig = make_fake(Family.LEDGER)
    registrations = Full()
    async with (
        asyncio.timeout(QUICK.person),
        bridged(rig, registrations=registrations) as (bridge, (device,)),
    ):
        await bridge.enrol(device.id, OURS, NAME)
        (kept,) = registrations.all()
        RegistrationsInMemory.keep(
            registrations, type(kept)(kept.fingerprint, kept.vault, kept.name, bytes(32))
        )
        with pytest.raises(NotEnrolled):
            await bridge.sign(device.id, wallets.make_spend(OURS), OURS)
        assert registrations.all() == ()
