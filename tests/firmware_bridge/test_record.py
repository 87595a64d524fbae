"""The state that follows from the end of an operation or a probe."""

import asyncio
from dataclasses import replace

import pytest

from firmware_bridge import Cancelled, DeviceState, Family, Uninitialised
from multisig import multisig_account_path
from tests.conformance import rigs
from tests.conformance.rigs import QUICK, bridged, make_fake, make_rig
from tests.support.wallets import make_spend

pytestmark = pytest.mark.anyio

VAULT = rigs.make_vault()


async def test_a_question_that_was_given_up_unlocks_no_device():
    async with asyncio.timeout(QUICK.read):
        async with bridged(make_fake(Family.TREZOR, passphrase=True)) as (bridge, (device,)):
            asked = asyncio.Event()

            async def ask(_question):
                asked.set()
                await asyncio.Event().wait()

            unlocking = asyncio.create_task(bridge.unlock(device.id, ask))
            await asked.wait()
            await bridge.cancel(device.id)
            with pytest.raises(Cancelled):
                await unlocking
            assert await bridge.list() == (device,)
            assert device.state == DeviceState.NEEDS_PASSPHRASE


def keep_keys(rig, *, kept: bool) -> None:
    """Wiped, or set up again, while it stays connected."""
    dispatcher = rig.device._dispatcher
    dispatcher._features = replace(dispatcher._features, initialized=kept)


@pytest.mark.parametrize("operation", ["fingerprint", "xpub", "enrol", "sign", "identify"])
async def test_a_device_that_was_wiped_while_connected_is_not_ready(tmp_path, operation):
    rig = make_rig(Family.TREZOR, tmp_path)
    async with bridged(rig) as (bridge, (device,)):
        assert device.state == DeviceState.READY
        keep_keys(rig, kept=False)
        arguments = {
            "xpub": (multisig_account_path(VAULT.network),),
            "enrol": (VAULT, "Ours"),
            "sign": (make_spend(VAULT), VAULT),
        }.get(operation, ())
        with pytest.raises(Uninitialised) as caught:
            await getattr(bridge, operation)(device.id, *arguments)
        assert caught.value.hint.startswith("Set it up first")
        (wiped,) = await bridge.refresh()
        assert (wiped.state, wiped.fingerprint) == (DeviceState.UNINITIALISED, None)
        assert wiped.detail == Uninitialised.sentence
        keep_keys(rig, kept=True)
        (restored,) = await bridge.refresh()
        assert (restored.state, restored.fingerprint) == (DeviceState.READY, rig.seed.fingerprint)
