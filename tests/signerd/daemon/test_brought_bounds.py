"""How much an app may bring, so that the person is not worn out, the disk not filled, and everybody else served (L6)."""

from datetime import timedelta

import pytest

from multisig import build_psbt
from signerd import brought
from signerd.errors import TooManyBrought
from signerd.loopback.callers import TERMINAL
from tests.signerd.daemon.test_brought import OTHER, WALLET, platform, prepared, pytestmark
from tests.support.bills import bill
from tests.support.daemons import daemon_at
from tests.support.desk import VAULT
from tests.support.wallets import fund, pay

__all__ = ["platform", "prepared", "pytestmark"]


def of_inputs(count: int):
    coins = [fund(VAULT, 10_000, index=number) for number in range(count)]
    return build_psbt(VAULT, coins, [pay(count * 9_500)], 0).to_base64()


async def test_l6_who_takes_back_and_brings_again_asks_no_oftener(
    prepared, platform, bridge, monkeypatch
) -> None:
    monkeypatch.setattr(brought, "MOST_A_DAY", 3)
    async with daemon_at(prepared, platform, bridge) as daemon:
        for number in range(3):
            view = await daemon.brought.bring(bill(number, 10_000 + number).to_base64(), WALLET)
            await daemon.brought.withdraw(view.psbt_id, WALLET)
        with pytest.raises(TooManyBrought, match="in a day"):
            await daemon.brought.bring(bill(4).to_base64(), WALLET)
        for caller in (OTHER, TERMINAL):
            await daemon.brought.bring(bill(4).to_base64(), caller)
        real = daemon.journal.now
        daemon.journal.now = lambda: real() + timedelta(days=1)
        await daemon.brought.bring(bill(4).to_base64(), WALLET)


async def test_l6_an_app_has_few_inputs_judged_in_a_minute(prepared, platform, bridge, monkeypatch) -> None:
    monkeypatch.setattr(brought, "MOST_INPUTS_A_MINUTE", 6)
    now = 0.0
    async with daemon_at(prepared, platform, bridge) as daemon:
        daemon.brought.clock = lambda: now
        # A larger one than all together may be, where it is the first.
        assert (await daemon.brought.inspect(of_inputs(7), WALLET)).allowed
        for ask in (daemon.brought.inspect, daemon.brought.bring):
            with pytest.raises(TooManyBrought, match="6 inputs"):
                await ask(of_inputs(1), WALLET)
        await daemon.brought.inspect(of_inputs(7), OTHER)
        await daemon.brought.inspect(of_inputs(7), TERMINAL)
        now = 60.0
        await daemon.brought.bring(of_inputs(3), WALLET)
        # Known by now: nothing is judged again.
        await daemon.brought.bring(of_inputs(3), WALLET)
        await daemon.brought.inspect(of_inputs(3), WALLET)
        with pytest.raises(TooManyBrought, match="6 inputs"):
            await daemon.brought.inspect(of_inputs(1), WALLET)
