"""The virtual Trezor's faults, each at each moment: what a host sees of a device that stalls, vanishes or
babbles.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from device_simulators.faults import Faults, Phase
from device_simulators.panel import Panel, approve_all
from device_simulators.trezor import VirtualTrezor
from device_simulators.trezor import messages as m
from device_simulators.trezor.wire import CHUNK, PING, MalformedFrame
from tests.support.trezor_host import MASTER, Host, host_of, spending
from tests.support.virtual import NETWORK, seed, spend, vault

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def device(**faults) -> AsyncIterator[tuple[VirtualTrezor, Host]]:
    made = VirtualTrezor(seed(), Panel(approve_all), NETWORK, faults=Faults(**faults))
    endpoint = await made.start()
    try:
        async with host_of(endpoint) as host:
            yield made, host
    finally:
        await made.stop()


async def provoke(host: Host, phase: Phase) -> None:
    """Do what leads to this phase, up to the message that finds no proper answer."""
    if phase is Phase.PROBE:
        host.send(m.GetFeatures())
        return
    await host.initialize()
    if phase is Phase.XPUB:
        host.send(m.GetPublicKey(address_n=MASTER, coin_name="Testnet"))
        return
    host.patience = 0.2
    spend_of_two = spending(spend(vault(), inputs=2), vault())
    with pytest.raises(TimeoutError):
        await spend_of_two.run(host)


@pytest.mark.parametrize("phase", list(Phase))
async def test_a_stalled_device_answers_nothing_any_more_until_it_is_plugged_in_again(phase):
    async with device(stall_at=phase) as (made, host):
        await provoke(host, phase)
        assert await host.hears_nothing()
        host.transport.sendto(PING)
        host.send(m.Cancel())
        assert await host.hears_nothing()
        assert made.panel.pending is None
        made.faults = Faults()
        async with host_of(await made.start()) as again:
            await again.initialize()


@pytest.mark.parametrize("phase", list(Phase))
async def test_a_device_that_vanished_is_gone_until_it_is_plugged_in_again(phase):
    async with device(vanish_at=phase) as (made, host):
        await provoke(host, phase)
        assert await host.hears_nothing()
        host.transport.sendto(PING)
        assert await host.hears_nothing()
        made.faults = Faults()
        port = host.transport.get_extra_info("peername")[1]
        async with host_of(await made.start(port=port)) as again:
            await again.initialize()


@pytest.mark.parametrize("phase", list(Phase))
async def test_garbage_is_no_frame(phase):
    async with device(garbage_at=phase) as (_, host):
        if phase in {Phase.PROBE, Phase.XPUB}:
            await provoke(host, phase)
            assert await host.chunk() == b"\xff" * CHUNK
            return
        await host.initialize()
        with pytest.raises(MalformedFrame):
            await spending(spend(vault()), vault()).run(host)


async def test_wrong_and_missing_signatures_are_only_those_that_were_named():
    psbt = spend(vault(), inputs=3)
    async with device() as (_, host):
        await host.initialize()
        good = spending(psbt, vault())
        assert await good.run(host) is None
    async with device(wrong_signatures=frozenset({2}), missing_signatures=frozenset({1})) as (_, host):
        await host.initialize()
        bad = spending(psbt, vault())
        assert await bad.run(host) is None
    assert sorted(bad.signatures) == [0, 2]
    assert bad.signatures[0] == good.signatures[0]
    assert bad.signatures[2] != good.signatures[2]
