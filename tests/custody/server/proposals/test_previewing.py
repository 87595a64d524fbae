"""`preview-psbt` says what `create-psbt` makes, refuses what it refuses, and stores nothing."""

import pytest
from sqlalchemy import update

from custody.server.store.models import CoinLockRow, ProposalRow, UserRow
from multisig import Network, Psbt, encode_address
from tests.support.custody import CAFE, SHOP, Desk, ok
from tests.support.look_alikes import alike, look_alikes
from tests.support.replacing import cancel, finished, made


def body_of(desk: Desk, **changes: object) -> dict:
    asked = {"wallet_id": desk.vault["id"], "workspace_id": desk.workspace_id, "tx_type": "send"}
    return asked | {"recipients": [SHOP], "amounts_sats": [400_000]} | changes


def preview(desk: Desk, **changes: object) -> dict:
    return ok(desk.admin.post("/api/v1/preview-psbt", body_of(desk, **changes)))


def spent(psbt_base64: str) -> set[str]:
    return {str(item.outpoint) for item in Psbt.parse(psbt_base64).inputs}


def amounts_of(answer: dict) -> list[int]:
    return sorted(output.amount for output in Psbt.parse(answer["psbt_base64"]).outputs)


@pytest.fixture
def rich(desk):
    desk.deposit(1_000_000, 700_000, 500_000)
    return desk


def test_the_same_payment_that_waits_or_was_made_is_said_before_another_is_made(rich):
    assert preview(rich)["same_as"] is None
    first = ok(rich.admin.post("/api/v1/create-psbt", body_of(rich)))["psbt_id"]
    assert preview(rich)["same_as"] == preview(rich, recipients=[SHOP.upper()])["same_as"] == first
    assert rich.proposal(
        ok(
            rich.admin.post(
                "/api/v1/create-psbt", body_of(rich, recipients=[SHOP.upper()], amounts_sats=[9_000])
            )
        )["psbt_id"]
    )["recipients"] == [SHOP]
    assert preview(rich, op_return="Invoice 7")["same_as"] is None
    assert preview(rich, amounts_sats=[400_001])["same_as"] is None
    assert preview(rich, recipients=[CAFE])["same_as"] is None
    petty = ok(rich.create_vault("Petty cash"))
    rich.deposit(600_000, to=petty["address"])
    assert preview(rich, wallet_id=petty["id"])["same_as"] == first, "the same bill, from another vault"
    rich.approve("alice", first)
    ok(cancel(rich, first))
    assert preview(rich)["same_as"] == first, "it may still be sent"
    ok(cancel(rich, first, release_coins=True))
    assert preview(rich)["same_as"] is None
    paid = made(rich.admin.post("/api/v1/create-psbt", body_of(rich)))
    finished(rich, paid)
    assert preview(rich)["same_as"] == paid
    rich.later(days=14)
    assert preview(rich)["same_as"] is None


def test_what_was_shown_is_what_is_made_of_the_same_coins(rich):
    """And the limits are told as they would be after it. Showing it stores nothing and holds no coin."""
    for asked in (
        {"priority": "high", "op_return": "Invoice 7"},
        {"recipients": [SHOP, CAFE], "amounts_sats": [900_000, 800_000]},
        {"amounts_sats": None, "sweep": True, "fee_rate": "3.5"},
    ):
        before = rich.rows(ProposalRow), rich.audited()
        shown = preview(rich, **asked)
        assert rich.rows(CoinLockRow) == []
        assert [each.id for each in rich.rows(ProposalRow)] == [each.id for each in before[0]]
        assert rich.audited() == before[1]
        assert shown["movement_sats"] == sum(shown["amounts_sats"]) + shown["fee_sats"]
        pinned = {"coins": shown["coins"], "fee_rate": shown["asked_fee_rate"]}
        if asked.get("sweep"):
            pinned |= {"sweep": False, "sweep_coins": True}
        again = {name: value for name, value in asked.items() if name != "priority"} | pinned
        created = ok(rich.admin.post("/api/v1/create-psbt", body_of(rich, **again)))
        record = rich.proposal(created["psbt_id"])
        for name in ("fee_sats", "fee_rate", "recipients", "amounts_sats"):
            assert record[name] == shown[name], (name, asked)
        assert spent(created["psbt_base64"]) == spent(shown["psbt_base64"]) == set(shown["coins"])
        assert amounts_of(created) == amounts_of(shown)
        query = {"workspace_id": rich.workspace_id, "wallet_id": rich.vault["id"], "recipients": (SHOP,)}
        left = ok(rich.admin.get("/api/v1/max-send", **query))
        for name in ("role_left_sats", "vault_left_sats"):
            assert left[name] == shown[name], (name, asked)
        ok(cancel(rich, created["psbt_id"]))


def test_a_bump_and_a_cancel_are_shown_as_they_are_made(rich):
    finished(rich, psbt_id := made(rich.propose(400_000, fee_rate="2")))
    none = {"recipients": [], "amounts_sats": None}
    back = preview(rich, **none, cancels_psbt_id=psbt_id, fee_rate="11")
    assert back["movement_sats"] == back["fee_sats"]
    bump = none | {"replaces_psbt_id": psbt_id, "fee_rate": "9"}
    shown = preview(rich, **bump)
    assert shown["amounts_sats"] == [400_000]
    created = ok(rich.admin.post("/api/v1/create-psbt", body_of(rich, **bump)))
    assert amounts_of(created) == amounts_of(shown)
    assert spent(created["psbt_base64"]) == set(shown["coins"])


def test_a_list_by_vault_names_its_people_and_their_reasons(rich):
    """An e-mail address is a name only for those who may see the members."""
    with rich.store.write() as db:
        alice = update(UserRow).where(UserRow.email == "alice@example.org")
        db.execute(alice.values(first_name="Alice", surname="Ruiz"))
    psbt_id = made(rich.propose(100_000))
    ok(rich.decline("bob", psbt_id, "not ours"))
    query = {"workspace_id": rich.workspace_id, "vault_id": rich.vault["id"]}
    (record,) = ok(rich.admin.get("/api/v1/psbt", **query))
    assert record["vault_name"] == "Treasury"
    mails = ["bob@example.org", "carol@example.org"]
    assert [each["name"] for each in record["signers"]] == ["Alice Ruiz", *mails]
    (seen,) = ok(rich.signers["bob"].get("/api/v1/psbt", **query))
    assert [each["name"] for each in seen["signers"]] == ["Alice Ruiz", None, None]
    assert [each["reason"] for each in record["signers"]] == [None, "not ours", None]


def test_s37_a_payee_that_only_resembles_one_paid_or_named_before_is_said(rich):
    """What was proposed alone is not known, and what is known resembles nothing. A name makes none the one
    that was paid, or the vault's.
    """
    paid, named = (
        [encode_address(script, Network.REGTEST) for script in look_alikes(name, Network.REGTEST)]
        for name in ("paid", "named")
    )
    both = {"recipients": [paid[1], named[1]], "amounts_sats": [20_000, 30_000]}
    proposal = made(rich.admin.post("/api/v1/create-psbt", body_of(rich, recipients=[paid[0]])))
    assert preview(rich, **both)["resembles"] == [None, None]
    twins = both | {"recipients": [named[1], named[0]]}
    assert preview(rich, **twins)["resembles"] == [None, named[1]], "two that nobody knows"
    finished(rich, proposal)
    rich.tell("add-whitelist-address", name="Rent", address=named[0])
    assert preview(rich, **both)["resembles"] == [paid[0], named[0]]
    assert preview(rich, **both | {"recipients": [paid[0], named[0].upper()]})["resembles"] == [None, None]
    finished(rich, made(rich.admin.post("/api/v1/create-psbt", body_of(rich, recipients=[paid[1]]))))
    assert preview(rich, **both)["resembles"] == [None, named[0]]
    vault = rich.vault["address"]
    vaults, compared = both | {"recipients": [alike(vault), vault]}, {alike(vault): vault, named[1]: named[0]}
    for _ in range(2):
        assert preview(rich, **vaults)["resembles"] == [vault, None]
        for address, known in compared.items():
            rich.tell("add-whitelist-address", name=address[-9:-4], address=address, resembles=known)
    assert preview(rich, **both)["resembles"] == [None, None]
