"""A treasurer's day, in the words of docs/operate/treasurer.md: each command is run as it stands."""

import json
import re
import shlex
from pathlib import Path
from typing import get_args

import pytest

from custody.cli import proposals, stored_session
from custody.client import Client
from custody.common.terminal import Exit
from custody.schemas.address_book import AddWhitelistAddressRequest
from custody.schemas.proposals import Advice, ProposalStatus
from multisig import Network, encode_address
from tests.custody.cli.conftest import Drawer
from tests.support.custody import CAFE, SHOP, Desk
from tests.support.platform import PASSWORD
from tests.support.sdk import sdk
from tests.support.wallets import foreign_script

GUIDE = Path(__file__).parents[3] / "docs" / "operate" / "treasurer.md"
PAGE = GUIDE.read_text(encoding="utf-8").replace("\\\n", "")
CREATE = ("proposal", "create")
COMMANDS = [shlex.split(line) for line in re.findall(r"^    custody (.*)$", PAGE, re.MULTILINE)]


@pytest.fixture(scope="module")
def admin(desk: Desk) -> Client:
    client = sdk(desk.world, "admin@example.org")
    for name, address in (("Acme", SHOP), ("Acme Trading", CAFE)):
        client.add_whitelist_address(AddWhitelistAddressRequest(workspace_id=1, name=name, address=address))
    return client


def test_each_command_of_the_page_does_what_it_says(desk, admin, custody, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    keyring = Drawer()
    monkeypatch.setattr("custody.cli.desk.store_of", lambda *_: keyring)
    answers = {"login": f"admin@example.org\n{PASSWORD}\n"}
    said = []
    for words in COMMANDS:
        if words[:2] == ["proposal", "create"]:
            (vault,) = [one for one in admin.list_wallets(workspace_id=1) if one.name == "Cold reserve"]
            desk.deposit(1_000_000, to=vault.receive_address)
        named = [admin.proposals(1).items[-1].psbt_id[:6] if word == "PROPOSAL" else word for word in words]
        done = custody(*named, answers=answers.get(words[0], "y\n"))
        assert done.exit_code == Exit.OK, (named, done.output)
        said.append(done.stdout)
    story = "\n".join(said)
    for words in (
        "Signed in as admin@example.org. The session is kept in: keyring.",
        "1   Main       Acme          regtest  Administrator",
        "Vault 'Cold reserve'",
        "pending  Cold reserve  0.00050000 BTC (50,000 sats)  0 of 2  admin@example.org  Invoice of May",
        "no answer yet",
        "dave@example.org is invited",
        "invited dave@example.org with the role 2 (Signer)",
        "The limit is 2.00000000 BTC.",
        "The limit is 8.00000000 BTC.",
        "The limit is 1.50000000 BTC.",
        "Each signer's device is checked once in 6 months.",
        "No changes wait.",
        "The vault 'Cold reserve' is frozen.\n  Payments go on once a second person unfreezes it",
        "vaults.vault_policy_replaced",
        "You get a mail when something waits for you, without amounts and addresses.",
        "You get no mail when something waits for you.",
        "Service account 'Payroll' is made.",
        "custody_sa_1_",
        "1   Payroll  active  MANAGE_WORKSPACE, VIEW_BALANCES  192.0.2.0/24",
        "Service account 1 (Payroll) is revoked.",
        "Signed out.",
    ):
        assert words in story, story
    assert keyring.kept is None
    (made,) = [one for one in admin.proposals(1).items if one.description == "Invoice of May"]
    assert (made.recipients, made.amounts_sats) == ([SHOP], [50_000])
    assert len(COMMANDS) == 33


def test_nothing_is_sent_before_a_confirmation_that_shows_the_address(desk, admin, service):
    before = len(admin.proposals(1).items)
    asked = service(
        "proposal", "create", "Treasury", "25,000 sats", "acme", "--also", "0.0001BTC", CAFE, answers="n\n"
    )
    assert asked.exit_code == Exit.DECLINED
    assert f"pays   0.00025000 BTC (25,000 sats) to Acme, {SHOP}\n" in asked.stderr
    assert f"pays   0.00010000 BTC (10,000 sats) to Acme Trading, {CAFE}\n" in asked.stderr
    assert "in all 0.00035000 BTC (35,000 sats)" in asked.stderr
    assert re.search(
        r"  fee    0\.0000\d{4} BTC \([\d,]+ sats\), [\d.]+ sat/vB, as it is now\n", asked.stderr
    )
    assert asked.stdout == ""
    assert len(admin.proposals(1).items) == before
    assert service("limit", "set", "1BTC", "--vault", "Treasury").exit_code == Exit.USAGE, "no answer came"
    assert admin.vault_limits(1, desk.vault["id"]).limit == "10.00000000"


def test_with_yes_the_beginning_of_an_id_is_not_enough(desk, admin, service):
    vault_id = desk.vault["id"]
    begun = service(*CREATE, vault_id[:6], "25000sats", "Acme", "--yes")
    assert begun.exit_code == Exit.USAGE
    assert f"'{vault_id[:6]}' is {vault_id}: 'Treasury', 2 of 3" in begun.stderr
    link = f"bitcoin:{SHOP}?AMOUNT=.00025&label=Shop"
    done = service(
        "proposal", "create", "treasury", "25000sats", link, "--yes", "--json", "--fee-rate", "2.5"
    )
    assert done.exit_code == Exit.OK, done.output
    made = json.loads(done.stdout)
    assert (made["recipients"], made["amounts_sats"]) == ([SHOP], [25_000])
    assert 2.5 <= float(made["fee_rate"]) < 2.6
    assert admin.proposal(made["psbt_id"]).status is ProposalStatus.PENDING


def test_the_end_of_the_log_is_shown_in_its_order(admin, service):
    for name, words in (("Bakery", "bakery"), ("Butcher", "butcher")):
        address = encode_address(foreign_script(words), Network.REGTEST)
        admin.add_whitelist_address(AddWhitelistAddressRequest(workspace_id=1, name=name, address=address))
    [first, last] = json.loads(service("audit", "tail", "-n", "2", "--json").stdout)
    assert [first["action"], last["action"]] == ["ADDRESS_ADDED"] * 2
    assert first["event_hash"] == last["prev_hash"]


MAINNET = encode_address(foreign_script("mainnet"), Network.MAINNET)
MISTAKES = [
    (["vault", "show", "Reserve"], Exit.NOT_FOUND, "there is no vault 'Reserve'"),
    ([*CREATE, "Treasury", "0.5", SHOP], Exit.USAGE, "write it with its unit, like 0.25BTC"),
    ([*CREATE, "Treasury", "0sats", SHOP, "--yes"], Exit.USAGE, "number 1 of the amounts must be 1 or more"),
    ([*CREATE, "Treasury", "1BTC", "Acm"], Exit.NOT_FOUND, "there is no recipient 'Acm'"),
    ([*CREATE, "Treasury", "1BTC", SHOP[:-1]], Exit.NOT_FOUND, "It is not an address either"),
    ([*CREATE, "Treasury", "1BTC", MAINNET], Exit.NOT_DECIDED, "another network"),
    ([*CREATE, "Treasury", "1BTC", f"bitcoin:{SHOP}?Req-x"], Exit.NOT_DECIDED, "requires 'req-x'"),
    ([*CREATE, "Treasury", "1BTC", f"BITCOIN:{SHOP.upper()}?AMOUNT=.5"], Exit.USAGE,
     "Give the link's amount, 0.50000000 BTC"),
    ([*CREATE, "Treasury", "9BTC", SHOP, "--yes"], Exit.PLATFORM, "wait for a deposit"),
    ([*CREATE, "Treasury", "1BTC", SHOP, "--fee-rate", "fast"], Exit.USAGE, 'such as "2.5"'),
    ([*CREATE, "Treasury", "1BTC", SHOP, "--description", "x" * 1001, "--yes"], Exit.USAGE,
     "the description is too long: at most 1000 characters"),
    ([*CREATE, "Treasury", "1BTC", SHOP, "--coin", "abc:0"], Exit.USAGE,
     "number 1 of the coins must be a transaction's id"),
    ([*CREATE, "Treasury", "21000001BTC", SHOP], Exit.USAGE, "is more than the 21,000,000 bitcoin"),
    (["vault", "history", "Treasury", "--from", "2026-13-01"], Exit.USAGE,
     "'2026-13-01' is not in the calendar, written like 2026-05-01 or 2026-05-01T12:00:00Z"),
    (["proposal", "show", "ffffffff"], Exit.NOT_FOUND, "there is no proposal 'ffffffff'"),
    (["proposal", "list", "--status", "lost"], Exit.PLATFORM, "The status must be 'PENDING', 'SIGNED'"),
    (["member", "add", "nobody", "--yes"], Exit.USAGE, "the e-mail address must be written like ada@"),
    (["member", "add", "a@b.example", "--role", "King"], Exit.NOT_FOUND, "there is no role 'King'"),
    (["limit", "set", "1BTC"], Exit.USAGE, "name either a vault or a role"),
    (["workspace", "set", "--key-check-months", "25"], Exit.USAGE, "between key checks must be 24 or less"),
    (["limit", "set", "1BTC", "--vault", "Treasury", "--day", "3"], Exit.USAGE, "has no cycle"),
    (["vault", "create", "New", "-m", "3", "--signer", "bob@example.org", "--limit", "1BTC"], Exit.USAGE,
     "3 signatures cannot be asked of 1 signer"),
    (["vault", "list", "--workspace", "Elsewhere"], Exit.NOT_FOUND, "there is no workspace 'Elsewhere'"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "status", "sentence"), MISTAKES)
def test_a_mistake_is_told_in_words(admin, service, words, status, sentence):
    told = service(*words)
    assert (told.exit_code, told.stdout) == (status, ""), told.output
    assert sentence in told.stderr
    for word in ("pydantic", "Traceback", "body.", "input_value", "regular expression", "pattern", "openapi"):
        assert word not in told.stderr


def test_what_is_copied_is_as_the_platform_has_it():
    assert set(proposals._ADVICE) == set(get_args(Advice))
    assert stored_session.ClientSettings("https://custody.example", "a@b.example").store == "keyring"
