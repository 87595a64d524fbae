"""PIN and passphrase: asked for by `unlock` and by nothing else, where the computer is the place to give
them.
"""

import pytest

from firmware_bridge import DeviceState, Locked, NeedsPassphrase, Question, WrongDevice
from tests.conformance import makes, payments
from tests.conformance.makes import TREZOR, VAULT, Person, enrol, sign_and_check
from tests.conformance.rigs import ACCOUNT, bridged

pytestmark = pytest.mark.anyio


PASSPHRASES = [(TREZOR, "passphrase_protection"), *((make, "passphrase") for make in makes.FAKES)]


async def test_a_locked_device_says_so(rig, make, folder):
    rig = make.rig(folder, **make.pin)
    rig.device.lock()
    async with bridged(rig) as (bridge, [device]):
        assert device.state == DeviceState.LOCKED
        assert device.fingerprint is None
        with pytest.raises(Locked):
            await bridge.xpub(device.id, ACCOUNT)
        with pytest.raises(Locked):
            await bridge.sign(device.id, payments.make_spend(VAULT), VAULT)
        (after,) = await bridge.list()
        assert after.state == DeviceState.LOCKED


async def test_a_device_unlocked_by_its_own_buttons_is_noticed(make, folder):
    rig = make.rig(folder, **make.pin)
    rig.device.lock()
    async with bridged(rig) as (bridge, [device]):
        rig.device.unlock()
        (unlocked,) = await bridge.refresh()
        assert unlocked.state == DeviceState.READY
        await enrol(bridge, device)
        await sign_and_check(bridge, device, rig)


@pytest.mark.parametrize(("make", "option"), PASSPHRASES, ids=lambda value: getattr(value, "name", ""))
class TestPassphrases:
    async def test_reading_asks_for_no_passphrase(self, make, option, folder):
        rig = make.rig(folder, **{option: True})
        async with bridged(rig) as (bridge, [device]):
            assert (device.state, device.fingerprint) == (DeviceState.NEEDS_PASSPHRASE, None)
            with pytest.raises(NeedsPassphrase):
                await bridge.xpub(device.id, ACCOUNT)

    async def test_the_passphrase_opens_its_wallet_until_the_device_is_unplugged(self, make, option, folder):
        rig = make.rig(folder, **{option: True})
        hidden = rig.seed.with_passphrase("horse")
        async with bridged(rig) as (bridge, [device]):
            person = Person(rig, passphrase="horse")
            unlocked = await bridge.unlock(device.id, person)
            assert person.asked == [Question.PASSPHRASE]
            assert unlocked.fingerprint == hidden.fingerprint
            # The passphrase is not lost with the worker: the device still has it.
            rig.workers[-1].kill()
            assert (await bridge.xpub(device.id, ACCOUNT)).fingerprint == hidden.fingerprint
            await rig.unplug()
            await bridge.refresh()
            await rig.plug_in()
            (back,) = await bridge.refresh()
            assert back.state == DeviceState.NEEDS_PASSPHRASE

    async def test_s18_another_passphrase_is_another_device(self, make, option, folder):
        rig = make.rig(folder, **{option: True})
        async with bridged(rig) as (bridge, [device]):
            await bridge.unlock(device.id, Person(rig, passphrase="wrong"))
            with pytest.raises(WrongDevice):
                await bridge.sign(device.id, payments.make_spend(VAULT), VAULT)
            await bridge.unlock(device.id, Person(rig, passphrase=""))
            await enrol(bridge, device)
            await sign_and_check(bridge, device, rig)
