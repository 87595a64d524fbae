"""Every backend beside the chain itself: its network, estimates, threads, and failures."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from custody.server.errors import ChainUnavailable
from multisig.units import FeeRate
from tests.support.chains import confirmed_coin
from tests.support.regtest import open_output, spend


def test_an_estimate_is_a_rate_or_none(rig):
    rig.mine()
    for target in (1, 6, 144, 1_008, 100_000):
        rate = rig.backend.fee_estimate(target)
        assert rate is None or (isinstance(rate, FeeRate) and rate.sat_per_kvb > 0)


def test_without_a_server_every_call_is_unavailable_and_later_works_again(rig):
    coin, number = confirmed_coin(rig)
    ours = [open_output(number)]
    payment = spend(coin, number, to=open_output(rig.fresh()))
    tip = rig.backend.tip()
    with rig.down():
        for ask in (
            rig.backend.tip,
            lambda: rig.backend.block_at(tip.height),
            lambda: rig.backend.outputs_to(ours),
            lambda: rig.backend.transaction(coin.outpoint.txid),
            lambda: rig.backend.broadcast(payment),
        ):
            with pytest.raises(ChainUnavailable):
                ask()
    assert rig.backend.tip() == tip
    assert rig.backend.outputs_to(ours) == (coin,)


def test_several_threads_ask_at_once_while_the_chain_moves(rig):
    coin, number = confirmed_coin(rig)
    ours = [open_output(number)]

    def ask(_turn):
        tip = rig.backend.tip()
        assert rig.backend.block_at(0) is not None
        assert rig.backend.transaction(coin.outpoint.txid).block == coin.block
        return tip.height, rig.backend.outputs_to(ours)

    with ThreadPoolExecutor(4) as threads:
        asked = [threads.submit(ask, turn) for turn in range(16)]
        mined = [rig.mine()[0] for _ in range(4)]
        answers = [each.result() for each in asked]
    assert all(found == (coin,) for _, found in answers)
    assert rig.backend.tip() == mined[-1]
