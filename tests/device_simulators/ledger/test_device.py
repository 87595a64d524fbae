"""The virtual Ledger's faults in its signatures. The others: tests/conformance/test_faults.py."""

import asyncio

import pytest

from device_simulators.faults import Faults, Phase
from tests.support.ledger_host import OK, VAULT, policy_of, registered, spending, table
from tests.support.virtual import spend

pytestmark = pytest.mark.anyio

POLICY = policy_of(VAULT)


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
