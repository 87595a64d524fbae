"""The virtual Ledger's faults, each at each moment: what a host sees of a device that stalls, vanishes or
babbles.
"""

import asyncio
from itertools import count

import pytest

from device_simulators.faults import Faults, Phase
from tests.support.ledger_host import OK, VAULT, Host, Table, host_of, policy_of, registered, spending, table
from tests.support.virtual import seed, spend

pytestmark = pytest.mark.anyio

GET_VERSION = (0xB0, 0x01)
POLICY = policy_of(VAULT)
# Seconds for some hundreds of exchanges, on a busy machine.
PATIENCE = 20.0


async def provoke(it: Table, phase: Phase, **faults: Phase) -> None:
    """Do what leads to this phase; raises what the host sees where no proper answer comes."""
    host = it.host
    mark = await registered(host, POLICY)
    it.device.faults = Faults(**faults)
    async with asyncio.timeout(PATIENCE):
        if phase is Phase.PROBE:
            await host.exchange(*GET_VERSION)
        elif phase is Phase.XPUB:
            await host.exchange(0xE1, 0x00, b"\x01\x00")
        else:
            await host.sign(spending(spend(VAULT, inputs=2), POLICY), mark)


async def works(host: Host) -> bool:
    return (await host.exchange(0xE1, 0x05)) == (OK, bytes(seed().fingerprint))


@pytest.mark.parametrize("phase", list(Phase))
async def test_a_stalled_device_answers_nothing_any_more_until_it_is_plugged_in_again(phase):
    async with table() as it:
        async with asyncio.timeout(PATIENCE):
            provoking = asyncio.create_task(provoke(it, phase, stall_at=phase))
            for _ in count():
                if it.device._silent:
                    break
                await asyncio.sleep(0)
            provoking.cancel()
            await asyncio.gather(provoking, return_exceptions=True)
        it.host.send(*GET_VERSION)
        assert await it.host.hears_nothing()
        async with host_of(it.endpoint) as other:  # it is still there
            other.send(*GET_VERSION)
            assert await other.hears_nothing()
        assert it.device.panel.pending is None
        it.device.faults = Faults()
        async with host_of(await it.device.start()) as again:
            assert await works(again)


@pytest.mark.parametrize("phase", list(Phase))
async def test_a_device_that_vanished_is_gone_until_it_is_plugged_in_again(phase):
    async with table() as it:
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await provoke(it, phase, vanish_at=phase)
        port = int(it.endpoint.place.rpartition(":")[2])
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
        assert it.device.panel.pending is None
        it.device.faults = Faults()
        async with host_of(await it.device.start(port=port)) as again:
            assert await works(again)


@pytest.mark.parametrize("phase", list(Phase))
async def test_garbage_is_no_answer_and_the_next_connection_works(phase):
    async with table() as it:
        with pytest.raises(asyncio.IncompleteReadError):
            await provoke(it, phase, garbage_at=phase)
        it.device.faults = Faults()
        async with host_of(it.endpoint) as again:
            status, _ = await again.exchange(*GET_VERSION)
            assert status in {OK, 0x6A80, 0x6901}
            await it.device.start()


async def test_before_the_last_signature_is_given_the_others_are():
    async with table() as it:
        mark = await registered(it.host, POLICY)
        it.device.faults = Faults(vanish_at=Phase.RETURN)
        interpreter = spending(spend(VAULT, inputs=3), POLICY)
        given = []

        def count(request: bytes, answer: bytes) -> bytes:
            given.extend([request] * (request[0] == 0x10))
            return answer

        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await it.host.sign(interpreter, mark, count)
        assert [request[1] for request in given] == [0, 1]


async def test_wrong_and_missing_signatures_are_only_those_that_were_named():
    async with table() as it:
        mark = await registered(it.host, POLICY)
        lie = spending(spend(VAULT, inputs=3), POLICY)
        assert (await it.host.sign(lie, mark))[0] == OK
        good = it.host.yielded
        it.device.faults = Faults(wrong_signatures=frozenset({2}), missing_signatures=frozenset({1}))
        assert (await it.host.sign(lie, mark))[0] == OK
        bad = it.host.yielded
        it.device.faults = Faults(missing_signatures=frozenset({0, 1, 2}))
        assert (await it.host.sign(lie, mark))[0] == OK
        assert it.host.yielded == []
    assert [one[0] for one in bad] == [0, 2]
    assert bad[0] == good[0]
    assert bad[1][:35] == good[2][:35]
    assert bad[1] != good[2]
