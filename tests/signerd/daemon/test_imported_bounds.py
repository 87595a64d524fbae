"""How much an app may import, so that the person is not worn out, the disk not filled, and everybody else
served (L6).
"""

from datetime import timedelta

import pytest

from multisig import ChangeTo, build_psbt, sats
from signerd.callers import TERMINAL
from signerd.daemon import imported
from signerd.errors import TooManyImported
from tests.signerd.daemon.test_imported import OTHER, WALLET, platform, prepared, pytestmark
from tests.support.bills import bill
from tests.support.daemons import daemon_at
from tests.support.desk import VAULT
from tests.support.wallets import fund, pay

__all__ = ["platform", "prepared", "pytestmark"]


def of_inputs(count: int):
    coins = [fund(VAULT, 10_000, index=number) for number in range(count)]
    return build_psbt(VAULT, coins, [pay(count * 9_500)], 0).to_base64()


async def test_l6_who_takes_back_and_brings_again_asks_no_oftener(daemon, monkeypatch) -> None:
    monkeypatch.setattr(imported, "MOST_A_DAY", 3)
    for number in range(3):
        view = await daemon.imported.import_psbt(bill(number, 10_000 + number).to_base64(), WALLET)
        await daemon.imported.withdraw(view.psbt_id, WALLET)
    with pytest.raises(TooManyImported, match="in a day"):
        await daemon.imported.import_psbt(bill(4).to_base64(), WALLET)
    for caller in (OTHER, TERMINAL):
        await daemon.imported.import_psbt(bill(4).to_base64(), caller)
    real = daemon.journal.now
    daemon.journal.now = lambda: real() + timedelta(days=1)
    await daemon.imported.import_psbt(bill(4).to_base64(), WALLET)


def of_outputs(count: int):
    coin = fund(VAULT, count * 10_000 + 500, index=1)
    change = [ChangeTo(sats(10_000), 1, number) for number in range(count - 1)]
    return build_psbt(VAULT, [coin], [pay(10_000), *change], 0).to_base64()


async def test_l6_an_app_has_few_inputs_and_outputs_judged_in_a_minute(daemon, monkeypatch) -> None:
    monkeypatch.setattr(imported, "MOST_PARTS_A_MINUTE", 8)
    now = 0.0
    daemon.imported.clock = lambda: now
    # A larger one than all together may be, where it is the first.
    assert (await daemon.imported.inspect(of_inputs(7), WALLET)).allowed
    for ask in (daemon.imported.inspect, daemon.imported.import_psbt):
        with pytest.raises(TooManyImported, match="8 inputs and outputs"):
            await ask(of_inputs(1), WALLET)
    await daemon.imported.inspect(of_inputs(7), OTHER)
    await daemon.imported.inspect(of_inputs(7), TERMINAL)
    now = 60.0
    # Outputs as inputs: each may be change, and is derived again.
    await daemon.imported.import_psbt(of_outputs(3), WALLET)
    # Known by now, and counted: the signatures that a copy carries are verified.
    await daemon.imported.import_psbt(of_outputs(3), WALLET)
    with pytest.raises(TooManyImported, match="8 inputs and outputs"):
        await daemon.imported.inspect(of_inputs(1), WALLET)


@pytest.fixture
def judged(monkeypatch):
    """The proposals of which a review was made to be shown."""
    ids, real = [], imported.review

    def counting(snapshot, context):
        ids.append(snapshot.psbt_id)
        return real(snapshot, context)

    monkeypatch.setattr(imported, "review", counting)
    return ids


async def test_l6_a_list_of_what_was_imported_judges_nothing(prepared, platform, bridge, judged) -> None:
    """For any caller, after a restart, and for finished entries: the figures are stored with each entry."""
    async with daemon_at(prepared, platform, bridge) as daemon:
        first = await daemon.imported.import_psbt(bill(1).to_base64(), WALLET)
        second = await daemon.imported.import_psbt(bill(2, 20_000).to_base64(), WALLET)
        await daemon.imported.withdraw(first.psbt_id, WALLET)
    async with daemon_at(prepared, platform, bridge) as daemon:
        judged.clear()
        lines = await daemon.imported.all(WALLET)
        assert lines == await daemon.imported.all(TERMINAL)
        shown = await daemon.proposals(ended=True)
        assert judged == []
        view = await daemon.proposal(second.psbt_id)
    assert [(line.psbt_id, line.state) for line in lines] == [
        (first.psbt_id, "withdrawn"),
        (second.psbt_id, "waiting-for-person"),
    ]
    for listed in (lines, shown):
        assert [(line.paid_sats, line.fee_sats) for line in listed] == [(50_000, 1_000), (20_000, 1_000)]
    assert lines[1].model_dump().items() <= second.model_dump().items()
    assert shown[1].model_dump().items() <= view.model_dump().items()


async def test_l6_what_apps_have_open_is_bounded_in_bytes(daemon, monkeypatch) -> None:
    size = len(bill(1).to_bytes())
    monkeypatch.setattr(imported, "MOST_OPEN_BYTES_OF_AN_APP", 2 * size + 10)
    monkeypatch.setattr(imported, "MOST_OPEN_BYTES", 3 * size + 10)
    first = await daemon.imported.import_psbt(bill(1, 10_000).to_base64(), WALLET)
    await daemon.imported.import_psbt(bill(2, 20_000).to_base64(), WALLET)
    with pytest.raises(TooManyImported, match="imported PSBTs of this app"):
        await daemon.imported.import_psbt(bill(3, 30_000).to_base64(), WALLET)
    await daemon.imported.import_psbt(bill(3, 30_000).to_base64(), OTHER)
    with pytest.raises(TooManyImported, match="imported PSBTs of apps"):
        await daemon.imported.import_psbt(bill(4, 40_000).to_base64(), OTHER)
    # The person's own are the person's; and there is room again where something is over.
    await daemon.imported.import_psbt(bill(4, 40_000).to_base64(), TERMINAL)
    await daemon.imported.withdraw(first.psbt_id, WALLET)
    await daemon.imported.import_psbt(bill(5, 45_000).to_base64(), WALLET)
