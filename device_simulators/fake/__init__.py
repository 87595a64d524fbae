"""A fake device for the tests of programs that use this library: no process, no HWI, no socket on the
machine.

It plugs in where workers do, so that everything above them is the real bridge; it has a real seed and makes
real signatures. A script or the test itself presses its buttons, and it can be locked, unplugged and made to
misbehave at any moment:

    async def test_our_program_survives_a_refusal():
        device = FakeDevice(Seed.from_entropy(bytes(16)), Network.REGTEST, script=ask_person)
        async with bridge_to(device, network=Network.REGTEST) as bridge:
            (found,) = await bridge.refresh()
            signing = asyncio.create_task(our_program(bridge, found))
            await device.shown()
            device.panel.press_no()
            with pytest.raises(RefusedByPerson):
                await signing
        assert device.asked["sign"] == 1

(`Seed`, `ask_person` and `Faults` are those of `device_simulators`.) It passes the contract that the virtual
devices pass, as a device of any family that it is told to play. It shows nothing about HWI or a maker's
protocol.
"""

from device_simulators.fake.client import bridge_to, listing_of, spawner_of
from device_simulators.fake.device import FakeDevice

__all__ = ["FakeDevice", "bridge_to", "listing_of", "spawner_of"]
