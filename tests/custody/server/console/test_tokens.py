"""Tokens at the console: made, started, called in words."""

import pytest

from custody.server.store.models import AddressBookEntryRow, ContractRow
from tests.support.custody import CAFE, SHOP, ok
from tests.support.token_desk import BOB, EVE, TokenDesk


@pytest.fixture
def tokens(desk) -> TokenDesk:
    found = TokenDesk(desk)
    found.fund(200_000, 200_000)
    return found


@pytest.fixture
def path(here) -> str:
    return f"{here}/tokens"


TYPED = {"token_name": "Gold of the House", "ticker": "gold", "icon": "", "decimals_num": "2"}
TYPED |= {"total_supply": "1,000", "max_supply": "5000.50"}


def test_a_token_is_made_started_and_called_in_words(desk, tokens, browse, path):
    admin = browse("admin").open(f"{path}/new")
    admin.send(f"{path}/new", **TYPED | {"max_supply": "5000.505"}, status=422)
    assert "at most 2 decimals" in admin.words
    admin.send(f"{path}/new", **TYPED | {"total_supply": "12,5"}, status=422)
    assert "Write it with a point, as in 0.5." in admin.words
    assert ("token_name", "Gold of the House") in admin.form(f"{path}/new").fields
    admin.send(f"{path}/new", **TYPED)
    assert admin.facts["Network fee"].endswith("sats")
    admin.says("1,000.00 GOLD tokens", "5,000.50 GOLD tokens", desk.vault["address"], "any address")
    admin.confirm(f"{path}/new")
    (record,) = ok(desk.admin.get("/api/v1/workspace-contracts", workspace_id=desk.workspace_id))
    uid = record["contract_uid"]
    (proposal,) = ok(desk.admin.get("/api/v1/psbt", workspace_id=desk.workspace_id, status="PENDING"))
    tokens.finish(proposal["psbt_id"])
    admin.open(f"{path}/{uid}")
    assert "It is not started yet" in admin.words
    assert f"{path}/{uid}/call/transfer" not in admin.html, "before it is started nothing else has an effect"
    call = f"{path}/{uid}/call/init"
    admin.open(call).send(call)
    assert admin.facts["Network fee"].endswith("sats")
    admin.confirm(call)
    (proposal,) = ok(desk.admin.get("/api/v1/psbt", workspace_id=desk.workspace_id, status="PENDING"))
    tokens.finish(proposal["psbt_id"])
    admin.open(f"{path}/{uid}")
    assert "Held by Treasury1,000.00 GOLD" in admin.words
    call = f"{path}/{uid}/call/transfer"
    more = ok(desk.create_vault("Savings"))["id"]
    assert ("wallet_id", more) in admin.open(f"{call}?vault={more}").form(call).fields
    admin.open(call).send(call, amount="12.5", address=BOB, status=403)
    assert "does not fit the vault's limit: at most 10.00 whole tokens" in admin.words
    admin.open(call).send(call, amount="7.5", address=BOB)
    assert f"Send 7.50 GOLD tokens of the vault's to {BOB}." in admin.words
    admin.open(call).send(call, amount="a few", address=BOB, status=422)
    call = f"{path}/{uid}/call/mint"
    admin.open(call).send(call, amount="4000.51", address=BOB, status=422)
    assert "more would exist than the token's maximum supply" in admin.words
    assert ("amount", "4000.51") in admin.form(call).fields


def test_a_token_whose_deployment_failed_says_why_and_names_it(desk, tokens, browse, path):
    admin = browse("admin").open(f"{path}/new").send(f"{path}/new", **TYPED).confirm(f"{path}/new")
    (proposal,) = ok(desk.admin.get("/api/v1/psbt", workspace_id=desk.workspace_id, status="PENDING"))
    assert f"proposals/{proposal['psbt_id']}" in admin.html
    desk.reject(proposal["psbt_id"])
    admin.open(admin.url).says("State: failed", "Too many signers declined")
    assert f"proposals/{proposal['psbt_id']}" in admin.html


def test_an_address_is_listed_as_itself_whatever_bears_it_as_a_name(desk, tokens, browse, path):
    desk.enter("Shop", SHOP)
    desk.enter("Fund", EVE)
    with desk.store.write() as db:
        db.query(AddressBookEntryRow).filter_by(address=EVE).one().name = SHOP
    admin = browse("admin").open(f"{path}/new")
    admin.send(f"{path}/new", **TYPED, whitelist_enabled="yes", listed=f"{SHOP[:4]} {SHOP[4:]}")
    assert admin.facts["Listed from the start: Shop"] == SHOP
    assert EVE not in admin.words


def test_a_listed_name_that_leads_elsewhere_meanwhile_is_looked_at_again(desk, tokens, browse, path):
    uid = desk.enter("Fund", SHOP)["uid"]
    admin = browse("admin").open(f"{path}/new")
    admin.send(f"{path}/new", **TYPED, whitelist_enabled="yes", listed="Fund")
    ok(desk.tell("remove-whitelist-address", uid=uid))
    desk.enter("Fund", CAFE)
    admin.confirm(f"{path}/new", status=409)
    assert "would now do something else" in admin.words
    assert desk.rows(ContractRow) == []
    admin.send(f"{path}/new").confirm(f"{path}/new")
    assert len(desk.rows(ContractRow)) == 1


def test_a_paused_token_and_a_call_that_the_network_did_not_take_are_shown(desk, tokens, browse, path):
    uid = tokens.started()
    tokens.fund(200_000)
    tokens.done(uid, "pause")
    backends = desk.world.platform.background.backends
    away = dict(backends)
    call = ok(tokens.call(uid, "unpause"))
    backends.clear()
    desk.sign_off(call["psbt_id"])
    desk.outbox.run_due()
    backends.update(away)
    admin = browse("admin").open(f"{path}/{uid}")
    admin.says("and paused", "Any address may receive the token.", "the owner, who may always receive")
    assert f"{path}/{uid}/call/unpause" in admin.html
    assert f"{path}/{uid}/call/pause" not in admin.html
    admin.send(f"{path}/{uid}/calls/{call['call_uid']}/resubmit")
    desk.settle()
    assert "Offer it to the network again" not in admin.open(f"{path}/{uid}").words
