"""The address book through HTTP."""

import pytest

from custody.server.domain import address_book as rules
from custody.server.service.people import address_book
from multisig import Network, encode_address
from tests.support.platform import START, As, World
from tests.support.wallets import foreign_script

ADMIN, SIGNER, EVE = "admin@example.org", "signer@example.org", "eve@example.com"
CHANGES = ("add", "rename", "remove")


def address(label: str, network: Network = Network.REGTEST) -> str:
    return str(encode_address(foreign_script(label), network))


@pytest.fixture
def admin(world: World) -> As:
    """Administrator of workspace 1."""
    world.organisation("Acme", ADMIN)
    return world.as_user(ADMIN)


@pytest.fixture
def eve(world: World, admin: As) -> As:
    """Administrator of workspace 2, of another organisation."""
    world.organisation("Umbrella", EVE)
    return world.as_user(EVE)


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
    answer = user.get("/api/v1/get-whitelist-addresses", workspace_id=workspace_id)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_an_entry_is_kept_renamed_and_removed(admin: As, world: World) -> None:
    added = add(admin)
    assert added.status_code == 200, added.text
    created_at = START.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    first = {"uid": 1, "name": "Shop", "address": address("shop"), "network": "testnet"}
    assert added.json() == {**first, "created_at": created_at}
    assert book(admin) == [added.json()]
    assert change(admin, "rename", name="Café").json() == {**added.json(), "name": "Café"}
    assert [row["name"] for row in book(admin)] == ["Café"]
    assert change(admin, "remove").json() == {"success": True}
    assert book(admin) == []
    assert world.audit_actions("workspace:1")[-3:] == ["ADDRESS_ADDED", "ADDRESS_RENAMED", "ADDRESS_REMOVED"]


def test_entries_come_in_the_order_of_their_adding(admin: As) -> None:
    for number in range(3):
        add(admin, name=f"Shop {number}", address=address(f"shop {number}"))
    assert [row["name"] for row in book(admin)] == ["Shop 0", "Shop 1", "Shop 2"]


class TestAddresses:
    def test_are_stored_in_one_way_of_writing(self, admin: As) -> None:
        assert add(admin, address=f" {address('shop').upper()} ").json()["address"] == address("shop")

    @pytest.mark.parametrize("network", [Network.MAINNET, Network.TESTNET4])
    def test_of_another_network_are_refused(self, admin: As, network: Network) -> None:
        """P28: also those of the other test networks."""
        answer = add(admin, address=address("shop", network))
        assert answer.status_code == 422
        assert answer.json()["code"] == "WRONG_NETWORK_ADDRESS"
        assert answer.json()["errors"][0]["pointer"] == "/address"

    @pytest.mark.parametrize(
        "text", ["", "nowhere", "x" * 91, address("shop")[:8].upper() + address("shop")[8:], "' OR 1=1 --"]
    )
    def test_that_are_none_are_refused(self, admin: As, text: str) -> None:
        """P28 (mixed case), P50."""
        answer = add(admin, address=text)
        assert answer.status_code == 422
        assert answer.json()["code"] == "VALIDATION"
        assert book(admin) == []

    def test_stand_in_the_book_once(self, admin: As) -> None:
        add(admin)
        again = add(admin, name="Other", address=address("shop").upper())
        assert again.status_code == 409
        assert "as entry 1" in again.json()["detail"]


class TestNames:
    def test_name_one_address(self, admin: As) -> None:
        add(admin)
        again = add(admin, name="SHOP", address=address("cafe"))
        assert again.status_code == 409
        assert "has this name already" in again.json()["detail"]

    def test_may_be_written_anew(self, admin: As) -> None:
        add(admin)
        assert change(admin, "rename", name="SHOP").status_code == 200
        add(admin, name="Cafe", address=address("cafe"))
        assert change(admin, "rename", uid=2, name="shop").status_code == 409

    @pytest.mark.parametrize("name", ["=HYPERLINK(1)", "<script>", "'; DROP TABLE address_book; --", "%s{0}"])
    def test_are_text_and_nothing_else(self, admin: As, name: str) -> None:
        """P43, P50."""
        assert add(admin, name=name).json()["name"] == name
        assert book(admin)[0]["name"] == name

    @pytest.mark.parametrize("name", ["", "  ", "a\nb", "a\u202eb", "x" * 101])
    def test_stay_on_their_line(self, admin: As, name: str) -> None:
        assert add(admin, name=name).status_code == 422


class TestWho:
    @pytest.mark.parametrize("verb", ["rename", "remove"])
    def test_another_books_entry_is_not_there(self, admin: As, eve: As, verb: str) -> None:
        """P24: named from a workspace of one's own, it is answered as one that never was."""
        add(admin)
        theirs = change(eve, verb, workspace_id=2)
        none = change(eve, verb, workspace_id=2, uid=999)
        assert theirs.status_code == none.status_code == 404
        assert theirs.json()["detail"] == none.json()["detail"]
        assert [row["name"] for row in book(admin)] == ["Shop"]

    def test_two_workspaces_may_name_one_address(self, admin: As, eve: As) -> None:
        add(admin)
        assert add(eve, workspace_id=2).status_code == 200
        assert [row["uid"] for row in book(eve, 2)] == [2]


def test_a_book_has_an_end(admin: As, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rules.MAX_ENTRIES == 1_000
    monkeypatch.setattr(address_book, "MAX_ENTRIES", 2)
    for number in range(2):
        assert add(admin, name=f"Shop {number}", address=address(f"shop {number}")).status_code == 200
    full = add(admin, name="One more", address=address("one more"))
    assert full.status_code == 409
    assert "2 entries" in full.json()["detail"]
