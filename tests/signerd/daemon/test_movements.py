"""What came into a vault and what left it: the platform's word, but for what a known transaction says."""

from datetime import date

import httpx
import pytest

from signerd.core.states import State
from signerd.errors import NotPinned, PlatformAnswersWrongly, PlatformUnreachable
from tests.support.daemons import daemon_at, make_config, until, until_state
from tests.support.desk import NETWORK, VAULT, VAULT_ID, snapshot_of, spend
from tests.support.fake_bridge import FakeBridge
from tests.support.fake_platform import FakePlatform, movement, problem

pytestmark = pytest.mark.anyio
HONEST = snapshot_of(spend())
OURS = movement(
    2,
    txid=HONEST.txid_expected,
    kind="payment",
    amount_sats=-1,
    fee_sats=1,
    title="Invoice 7",
    outputs=[{"address": HONEST.recipients[0], "amount_sats": 1, "label": "Somebody"}],
)


@pytest.fixture
def platform(tmp_path):
    told = [movement(number) for number in range(1, 60)]
    told[1:2] = [OURS]
    told[0] |= {"height": None, "balance_sats": None, "status": "pending"}
    told[2]["outputs"][0]["label"] = "Donations"
    return FakePlatform(tmp_path, {"p-1": HONEST}, movements=told)


async def test_deposits_stand_beside_payments_a_page_at_a_time(prepared, platform):
    config = make_config(addresses={"The mill": VAULT.address(0, 4)})
    async with daemon_at(prepared, platform, FakeBridge(), config=config) as daemon:
        await until_state(daemon, "p-1", State.WAITING_PERSON)
        page = await daemon.movements.of_vault(VAULT_ID)
        assert (page.network, len(page.movements), page.left_out) == (str(NETWORK), 50, 0)
        first, ours, third, fourth = page.movements[:4]
        assert (first.kind, first.amount_sats, first.height, first.balance_sats) == (
            "deposit",
            1_000,
            None,
            None,
        )
        # The transaction is known: what it took is read from its bytes, whatever the platform says.
        assert (ours.psbt_id, ours.amount_sats, ours.fee_sats) == ("p-1", -51_000, 1_000)
        assert (ours.title or "").startswith("Pay 0.0005 BTC to ")
        assert ours.memo == "Invoice 7"
        assert (third.names, third.psbt_id, third.balance_sats) == ((), None, 503_000)
        assert third.platform_names == ("Donations",)
        # The person's own name of an address comes before the platform's.
        assert (fourth.names, fourth.platform_names) == (("The mill",), ())
        rest = await daemon.movements.of_vault(VAULT_ID, cursor=page.next)
        assert (len(rest.movements), rest.next) == (9, None)
        assert {one.txid for one in rest.movements}.isdisjoint(one.txid for one in page.movements)
        found = await daemon.movements.of_vault(VAULT_ID, search=" invoice ")
        assert [one.psbt_id for one in found.movements] == ["p-1"]


async def test_days_are_asked_for_from_midnight_to_midnight_in_utc(prepared, platform):
    asked = []
    platform.before = lambda request: asked.append(request.url)
    async with daemon_at(prepared, platform, FakeBridge()) as daemon:
        await until(lambda: bool(daemon.follower.state.workspaces))
        await daemon.movements.of_vault(VAULT_ID, since=date(2026, 5, 1), before=date(2026, 6, 1))
    query = next(url.params for url in asked if url.path.endswith("vault-history"))
    assert (query["from_time"], query["to_time"]) == ("2026-05-01T00:00:00.000Z", "2026-06-01T00:00:00.000Z")


async def test_an_entry_that_cannot_be_read_hides_no_other(prepared, platform):
    platform.movements[5:6] = [
        movement(5, kind="from-the-future"),
        "nothing",
        movement(7, amount_sats=10**30),
    ]
    async with daemon_at(prepared, platform, FakeBridge()) as daemon:
        await until(lambda: bool(daemon.follower.state.workspaces))
        page = await daemon.movements.of_vault(VAULT_ID)
        assert (len(page.movements), page.left_out) == (47, 3)


@pytest.mark.parametrize("body", [[], {"movements": None}, {"movements": [], "next_cursor": "../x"}])
async def test_an_answer_that_is_no_page_is_told_as_the_platforms_fault(prepared, platform, body):
    async with daemon_at(prepared, platform, FakeBridge()) as daemon:
        await until(lambda: bool(daemon.follower.state.workspaces))
        platform._history = lambda request: httpx.Response(200, json=body)
        with pytest.raises(PlatformAnswersWrongly):
            await daemon.movements.of_vault(VAULT_ID)


async def test_of_a_vault_that_is_not_pinned_nothing_is_asked(prepared, platform):
    async with daemon_at(prepared, platform, FakeBridge()) as daemon:
        await until(lambda: bool(daemon.follower.state.workspaces))
        platform.before = lambda request: (
            problem(503, "UNAVAILABLE") if request.url.path.endswith("vault-history") else None
        )
        with pytest.raises(PlatformUnreachable):
            await daemon.movements.of_vault(VAULT_ID)
        await daemon.unpin(VAULT_ID, VAULT.verification_code)
        with pytest.raises(NotPinned):
            await daemon.movements.of_vault(VAULT_ID)
