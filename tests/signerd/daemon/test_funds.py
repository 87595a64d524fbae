"""What a vault holds, its next address, its movements and its tokens: checked here where that is possible,
and shown as the platform's words where it is not (S13).
"""

from datetime import date

import httpx
import pytest

from multisig import MAX_INDEX
from signerd.core.states import State
from signerd.core.values import VaultClaim
from signerd.daemon import vaults
from signerd.daemon.funds import NONE_LEFT, NOT_OURS, REPLACED, vault_funds, vault_movements, vault_tokens
from signerd.errors import NotPinned, PlatformAnswersWrongly, UnknownVault
from signerd.journal import Journal
from tests.support.daemons import daemon_at, make_config, until_state
from tests.support.desk import NETWORK, VAULT, VAULT_ID, snapshot_of, spend
from tests.support.fake_bridge import FakeBridge
from tests.support.fake_platform import FakePlatform, movement, problem
from tests.support.paged import paged
from tests.support.tokens import GOLD, HELD, call, published, told_call
from tests.support.wallets import make_vault

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
    figures = {"next_address": VAULT.address(0, 7), "confirmed_sats": 5_000}
    tokens = {"holdings": [HELD], "calls": [told_call(uid) for uid in range(1, 30)]}
    return FakePlatform(tmp_path, {"p-1": HONEST}, movements=told, **figures, **tokens)


@pytest.fixture
async def daemon(prepared, platform):
    config = make_config(addresses={"The mill": VAULT.address(0, 4)})
    async with daemon_at(prepared, platform, FakeBridge(), config=config) as found:
        await until_state(found, "p-1", State.WAITING_PERSON)
        yield found


async def test_the_platform_says_which_of_our_addresses_is_next(daemon):
    found = await vault_funds(daemon, VAULT_ID)
    assert (found.fresh.index, found.fresh.address) == (7, VAULT.address(0, 7))
    assert (found.confirmed_sats, found.note) == (5_000, None)


async def test_a_vault_that_is_replaced_is_said_beside_its_address(daemon, monkeypatch):
    claim = VaultClaim(VAULT_ID, 1, "Treasury", VAULT.descriptor, replaced_by="new")
    monkeypatch.setattr(Journal, "claim", lambda _journal, _vault_id: claim)
    assert (await vault_funds(daemon, VAULT_ID)).note == REPLACED


async def test_s13_an_address_that_is_none_of_the_vaults_is_never_told(daemon, platform):
    platform.next_address = make_vault(threshold=1).address(0, 0)
    found = await vault_funds(daemon, VAULT_ID)
    assert (found.fresh.index, found.fresh.address) == (0, VAULT.address(0, 0))
    assert "Pay nothing to it" in (found.note or "")
    assert platform.next_address not in found.model_dump_json()


async def test_behind_the_last_address_there_is_none_and_that_is_said(daemon, platform, monkeypatch):
    """A thousand payments signed here lead there, each a thousand addresses further."""
    monkeypatch.setattr(Journal, "next_receive_index", lambda _journal, _vault: MAX_INDEX + 1)
    found = await vault_funds(daemon, VAULT_ID)
    assert (found.fresh.index, found.fresh.address) == (MAX_INDEX, VAULT.address(0, MAX_INDEX))
    assert (found.confirmed_sats, found.note) == (5_000, NONE_LEFT)
    # The worse finding is not hidden by it, and is found before all addresses up to there are derived.
    platform.next_address = make_vault(threshold=1).address(0, 0)
    assert (await vault_funds(daemon, VAULT_ID)).note == f"{NOT_OURS} {NONE_LEFT}"


async def test_without_the_platform_there_is_an_address_and_a_word_why_no_balance(daemon, platform):
    platform.before = lambda request: (
        problem(503, "UNAVAILABLE") if request.url.path.endswith("list-wallets") else None
    )
    found = await vault_funds(daemon, VAULT_ID)
    assert (found.confirmed_sats, found.fresh.index) == (None, 0)
    assert "signed here alone" in (found.note or "")
    await vaults.unpin(daemon, VAULT_ID, VAULT.verification_code)
    for asked in (vault_funds, vault_movements):
        with pytest.raises(NotPinned):
            await asked(daemon, VAULT_ID)


async def test_what_is_known_of_a_movement_comes_before_the_platforms_word(daemon):
    """What it shows of each, and page after page: `cli/test_vaults.py`."""
    page = await vault_movements(daemon, VAULT_ID)
    assert (page.network, len(page.movements), page.left_out) == (str(NETWORK), 50, 0)
    _first, ours, third, fourth = page.movements[:4]
    # The transaction is known: what it took is read from its bytes, whatever the platform says.
    assert (ours.psbt_id, ours.amount_sats, ours.fee_sats) == ("p-1", -51_000, 1_000)
    assert (third.names, third.platform_names) == ((), ("Donations",))
    # The person's own name of an address comes before the platform's.
    assert (fourth.names, fourth.platform_names) == (("The mill",), ())


async def test_days_are_asked_for_from_midnight_to_midnight_in_utc(daemon, platform):
    asked = []
    platform.before = lambda request: asked.append(request.url)
    await vault_movements(daemon, VAULT_ID, since=date(2026, 5, 1), before=date(2026, 6, 1))
    query = next(url.params for url in asked if url.path.endswith("vault-history"))
    assert (query["from_time"], query["to_time"]) == ("2026-05-01T00:00:00.000Z", "2026-06-01T00:00:00.000Z")


async def test_an_entry_that_cannot_be_read_hides_no_other(daemon, platform):
    platform.movements[5:6] = [
        movement(5, kind="from-the-future"),
        "nothing",
        movement(7, amount_sats=10**30),
    ]
    page = await vault_movements(daemon, VAULT_ID)
    assert (len(page.movements), page.left_out) == (47, 3)


@pytest.mark.parametrize("body", [[], {"movements": None}, {"movements": [], "next_cursor": "../x"}])
async def test_an_answer_that_is_no_page_is_told_as_the_platforms_fault(daemon, platform, body):
    platform._history = lambda request: httpx.Response(200, json=body)
    with pytest.raises(PlatformAnswersWrongly):
        await vault_movements(daemon, VAULT_ID)


async def test_an_unproven_token_has_the_platform_s_name_and_decimals_and_is_marked(daemon):
    (held,) = (await vault_tokens(daemon, VAULT_ID)).holdings
    assert (held.proven, held.name, held.balance) == (False, "Bitcoin <b>", "98750")


async def test_s13_a_proven_one_has_its_own(daemon):
    daemon.journal.learn_token(call(), published(GOLD))
    (held,) = (await vault_tokens(daemon, VAULT_ID)).holdings
    assert (held.proven, held.name, held.balance, held.supply) == (True, GOLD.name, "987.50", "1000.00")


async def test_the_newest_calls_come_first_and_more_is_said(daemon):
    found = await vault_tokens(daemon, VAULT_ID)
    assert [shown.uid for shown in found.calls] == list(range(29, 9, -1))
    assert found.more


@pytest.mark.parametrize("lie", [{"balance": "1e9"}, {"decimals": 2**63}, {"decimals": 10**9}, {"name": 7}])
async def test_f_a_holding_that_makes_no_sense_hides_no_other(daemon, platform, lie):
    platform.holdings, platform.calls = [{**HELD, **lie}, HELD], [{"UID": 2**63}, told_call(1)]
    found = await vault_tokens(daemon, VAULT_ID)
    assert [held.balance for held in found.holdings] == ["98750"]
    assert [shown.uid for shown in found.calls] == [1]
    assert found.more


async def test_the_platform_is_not_asked_about_an_unknown_vault(daemon):
    with pytest.raises(UnknownVault):
        await vault_tokens(daemon, "vault-9")


async def test_l8_the_page_marks_it_as_the_platform_s_words(daemon):
    async with paged(daemon) as browser:
        answer = await browser.get(f"/vaults/{VAULT_ID}/tokens")
    assert answer.status_code == 200
    assert "Not trusted here" in answer.text
    assert "Bitcoin &lt;b&gt;" in answer.text
    assert "<b>" not in answer.text.split("holdings-title")[1].split("calls-title")[0]
