"""The address book through HTTP; names and addresses in their one form."""

import pytest
from sqlalchemy import select, update

from custody.common.recipients import typed_address
from custody.common.text import name_key
from custody.server import address_book
from custody.server.store.models import (
    AddressBookEntryRow,
    KeyRow,
    OrganisationRow,
    RoleRow,
    VaultRow,
    WorkspaceRow,
)
from multisig import Network, encode_address
from tests.support.custody import Desk, neighbour_of, ok, refused
from tests.support.look_alikes import alike
from tests.support.platform import START, As, World
from tests.support.wallets import foreign_script


def address(label: str, network: Network = Network.REGTEST) -> str:
    return str(encode_address(foreign_script(label), network))


def entry(**changes: object) -> dict:
    return {"workspace_id": 1, "uid": 1, "name": "Shop", "address": address("shop"), **changes}


def add(user: As, **changes: object):
    body = entry(**changes)
    del body["uid"]
    return user.post("/api/v1/add-whitelist-address", body)


def change(user: As, verb: str, **changes: object):
    if verb == "add":
        return add(user, **changes)
    wanted = {"rename": ("workspace_id", "uid", "name"), "remove": ("workspace_id", "uid")}[verb]
    body = {name: value for name, value in entry(**changes).items() if name in wanted}
    return user.post(f"/api/v1/{verb}-whitelist-address", body)


def book(user: As, workspace_id: int = 1) -> list[dict]:
    return ok(user.get("/api/v1/get-whitelist-addresses", workspace_id=workspace_id))


def test_the_entries_that_lead_to_a_vault_of_the_workspace_and_of_no_other(desk: Desk) -> None:
    for name, path in (("first", (0, 0)), ("later", (0, 9)), ("change", (1, 3))):
        ok(add(desk.admin, name=name, address=desk.policy.address(*path)))
    ok(add(desk.admin))
    place = {"workspace_id": desk.workspace_id}
    found = ok(desk.admin.get("/api/v1/get-whitelist-addresses", **place, leads_to=desk.vault["id"]))
    assert [each["name"] for each in found] == ["first", "later", "change"]
    other = neighbour_of(desk)
    ok(add(other.admin, workspace_id=other.workspace_id, address=desk.vault["address"]))
    place = {"workspace_id": other.workspace_id}
    answer = other.admin.get("/api/v1/get-whitelist-addresses", **place, leads_to=desk.vault["id"])
    refused(answer, 404, "NOT_FOUND")


def test_an_entry_is_kept_renamed_and_removed(alice: As, world: World) -> None:
    """An address stands in the book once, in one way of writing; a name names one address."""
    added = add(alice, address=f" {address('shop').upper()} ")
    created_at = START.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    first = {"uid": 1, "name": "Shop", "address": address("shop"), "network": "testnet"}
    assert added.json() == {**first, "created_by": "1", "created_at": created_at}
    assert book(alice) == [added.json()]
    ok(add(alice, name="Cafe", address=address("cafe")))
    for answer, words in (
        (add(alice, name="Other", address=address("shop").upper()), "as 'Shop'"),
        (add(alice, name="SHOP", address=address("third")), "has this name already"),
        (change(alice, "rename", uid=2, name="shop"), "has this name already"),
    ):
        assert words in refused(answer, 409, "STATE_CONFLICT")["detail"]
    assert ok(change(alice, "rename", name="SHOP")) == {**added.json(), "name": "SHOP"}
    assert ok(change(alice, "remove")) == {"success": True}
    assert [row["name"] for row in book(alice)] == ["Cafe"]


def test_s37_a_look_alike_is_entered_by_who_has_compared_the_two(alice: As) -> None:
    ok(add(alice))
    known, rent = address("shop"), {"name": "Rent", "address": alike(address("shop"))}
    for compared in (None, address("cafe"), rent["address"]):
        problem = refused(add(alice, **rent, resembles=compared), 409, "STATE_CONFLICT")
        assert problem["figures"] == {"resembles": known}
        assert problem["detail"].startswith(f"{rent['address']} looks like {known}, which")
        assert "declined, and asked for again" in problem["detail"], "for who confirms it, and has no box"
    ok(add(alice, **rent, resembles=known))
    third = {"name": "Third", "address": alike(rent["address"])}
    both = ", ".join(sorted((known, rent["address"])))
    assert (
        refused(add(alice, **third, resembles=known), 409, "STATE_CONFLICT")["figures"]["resembles"] == both
    )
    ok(add(alice, **third, resembles=both))
    logged = ok(alice.get("/api/v1/get-logs", org_uid=1, workspace_uid=1))
    assert f"{rent['address']}, which is not {known}" in f"{logged}"


def test_p28_what_is_no_address_of_this_network_is_refused(alice: As) -> None:
    """Those of the other test networks, and mixed case, among them."""
    for network in (Network.MAINNET, Network.TESTNET4):
        answer = add(alice, address=address("shop", network))
        assert refused(answer, 422, "WRONG_NETWORK_ADDRESS")["errors"][0]["pointer"] == "/address"
    refused(add(alice, address=address("shop")[:8].upper() + address("shop")[8:]), 422, "VALIDATION")
    assert book(alice) == []


class TestNames:
    def test_that_read_as_an_address_are_refused(self, alice: As) -> None:
        """Who types that address would be led to another one by its name."""
        add(alice)
        for answer in (
            add(alice, name=address("cafe", Network.MAINNET), address=address("cafe")),
            change(alice, "rename", name=f"bitcoin:{address('cafe')}"),
        ):
            problem = refused(answer, 422, "VALIDATION")
            assert problem["errors"][0]["pointer"] == "/name"
            assert "Choose a name in words" in problem["detail"]

    def test_are_seen_whole_by_a_reader(self, alice: As, world: World) -> None:
        """S31: what was stored before such a rule stays readable, keeps its name, and can be renamed."""
        add(alice)
        for verb in ("add", "rename"):
            problem = refused(change(alice, verb, name="Acme\u034f"), 422, "VALIDATION")
            assert "U+034F (COMBINING GRAPHEME JOINER)" in problem["detail"]
        with world.platform.services.store.write() as db:
            for kind in (AddressBookEntryRow, VaultRow, RoleRow, WorkspaceRow, OrganisationRow, KeyRow):
                for row in db.scalars(select(kind)):
                    setattr(row, "label" if kind is KeyRow else "name", f"Acme\u034f{row.id}\u3164")
            db.execute(update(AddressBookEntryRow).values(name="Acme\u034f", name_key="acme\u034f"))
        assert [row["name"] for row in book(alice)] == ["Acme\u034f"]
        for path in ("list-wallets", "get-roles-and-perms-detailed", "get-users-from-workspace"):
            ok(alice.get(f"/api/v1/{path}", workspace_id=1))
        ok(alice.get("/api/v1/get-user-info"))
        ok(alice.get("/api/v1/keys"))
        assert ok(change(alice, "rename", name="Shop"))["name"] == "Shop"


def test_a_book_is_read_in_pages_and_searched_by_name_or_address(alice: As) -> None:
    for number in range(5):
        add(alice, name=f"Shop % {number}", address=address(f"shop {number}"))

    def read(**query: object) -> list[str]:
        found = ok(alice.get("/api/v1/get-whitelist-addresses", workspace_id=1, **query))
        return [entry["name"] for entry in found]

    assert read(limit=2) == ["Shop % 0", "Shop % 1"]
    assert read(limit=2, after=2) == ["Shop % 2", "Shop % 3"]
    assert read(search="SHOP  % 4") == ["Shop % 4"]
    assert read(search=address("shop 3")[:30]) == ["Shop % 3"]
    assert read(search=address("shop 3").upper()) == ["Shop % 3"]
    assert read(search="_hop") == []


def test_a_book_has_an_end(alice: As, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(address_book, "MAX_ENTRIES", 2)
    for number in range(2):
        assert add(alice, name=f"Shop {number}", address=address(f"shop {number}")).status_code == 200
    full = add(alice, name="One more", address=address("one more"))
    assert full.status_code == 409
    assert "2 entries" in full.json()["detail"]


SCRIPT = foreign_script("shop")
SHOP = encode_address(SCRIPT, Network.REGTEST)


@pytest.mark.parametrize("network", Network)
def test_an_address_of_any_network_and_a_link_are_no_names(network: Network) -> None:
    address = str(encode_address(SCRIPT, network))
    grouped = " ".join(address[at : at + 4] for at in range(0, len(address), 4))
    for text in (address, f" {address}\t", grouped, address[:9] + "\u200b\u00a0" + address[9:]):
        assert typed_address(text) == address
    for text in (address.upper(), address[:1].upper() + address[1:]):
        assert typed_address(text) == text, "a name in this form would be found for what is no address"
    for text in (f"bitcoin:{address}?amount=1", f"BITCOIN: {address}?amount=1", "bitcoin:shop"):
        assert typed_address(text) == text.replace(" ", "")


@pytest.mark.parametrize("text", [
    "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa", "2MzQwSSnBHWHqSAqtTVQ6v47XtaisrJa1Vc",
    "bc1zw508d6qejxtdg4y5r3zarvaryvaxxpcs",
])  # fmt: skip
def test_old_and_future_addresses_are_no_names(text: str) -> None:
    assert typed_address(text) == text


@pytest.mark.parametrize(
    "text", ["", "Shop", "bitcoin", "Bitcoin Ltd: Berlin", "bc1q", SHOP[:-1], SHOP + "q"]
)
def test_all_else_is_a_name(text: str) -> None:
    assert typed_address(text) is None


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Shop", "shop", True), ("Shop  1", "shop 1", True), ("STRASSE", "straße", True),
        ("Shop", "Sh\u200bop", True), ("Shop", "Shop\u200e\ufeff", True), ("Shop", "Ｓｈｏｐ", True),
        ("Office", "Oﬃce", True), ("A\u030angstro\u0308m", "Ångström", True), ("Shop 1", "Shop 2", False),
        ("Shop1", "Shop 1", False), ("Acme Pay", "Асme Рау", True),
        ("Bok", "Вок", True), ("Вера", "Bepa", True),
    ],
)  # fmt: skip
def test_names_that_a_reader_takes_for_one_are_one(one: str, other: str, same: bool) -> None:
    assert (name_key(one) == name_key(other)) is same
