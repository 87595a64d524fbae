"""What needs two people at a treasurer's terminal: changes under the rule, a vault that
is replaced (docs/operate/replacing-a-vault.md), and one that goes on.
"""

import json

import pytest

from custody.common.terminal import Exit
from custody.schemas.address_book import ADD_WHITELIST_ADDRESS, AddWhitelistAddressRequest
from custody.schemas.changes import ChangeRequest, RequestChangeRequest, SecondPersonRuleRequest
from custody.server.store.models import ProposalRow
from tests.support.custody import Desk
from tests.support.sdk import sdk

ADMIN, EVE = "admin@example.org", "eve@example.org"


@pytest.fixture
def run(custody, account):
    """A command of the named person, confirmed with yes by default."""

    def of(email: str, *words: str, answers: str = "y\ny\n"):
        return custody(*words, answers=answers, env={**account, "CUSTODY_EMAIL": email})

    return of


@pytest.fixture(scope="module")
def ruled(desk: Desk) -> Desk:
    desk.world.member(1, EVE, "Administrator")
    rule = SecondPersonRuleRequest(workspace_id=1, is_on=True, confirming_role_id=1)
    sdk(desk.world, ADMIN).update_second_person_rule(rule)
    return desk


def asked_for(run, limit: str, *more: str) -> str:
    """The id of a change of the vault's limit that waits."""
    done = run(ADMIN, "limit", "set", limit, "--vault", "Treasury", *more, "--json")
    assert done.exit_code == Exit.OK, done.output
    change = json.loads(done.stdout)
    assert (change["status"], change["path"]) == ("PENDING", "/api/v1/update-vault")
    return change["change_id"]


def limit_of(desk: Desk) -> str:
    return sdk(desk.world, ADMIN).vault_limits(1, desk.vault["id"]).limit


def test_a_limit_counts_once_another_administrator_has_confirmed_it(ruled, run):
    refused = run(ADMIN, "limit", "set", "3BTC", "--vault", "Treasury", answers="y\nn\n")
    assert refused.exit_code == Exit.DECLINED
    assert "a second person has to confirm that" in refused.stderr
    assert run(EVE, "change", "list").stdout == "No changes wait.\n"
    change_id = asked_for(run, "3BTC", "--per-cycle")
    assert limit_of(ruled) == "10.00000000"
    assert change_id in run(EVE, "change", "list").stdout
    own = run(ADMIN, "change", "confirm", change_id)
    assert own.exit_code == Exit.PLATFORM, "nobody confirms their own"
    # With --yes the person does not read what is shown.
    assert run(EVE, "change", "confirm", change_id[:8], "--yes").exit_code == Exit.USAGE
    done = run(EVE, "change", "confirm", change_id[:8])
    assert done.exit_code == Exit.OK, done.output
    assert "from then on at most 3.00000000 BTC in all payments of a calendar month (UTC)" in done.stderr
    assert done.stdout == "Confirmed, and done: Change a vault's spending limit.\n"
    assert limit_of(ruled) == "3.00000000"


def test_two_people_replace_a_vault_and_its_coins_are_swept(ruled, run):
    ruled.deposit(1_000_000)
    assert run(ADMIN, "vault", "sweep", "Treasury").exit_code == Exit.PLATFORM, "it is not replaced"
    book = AddWhitelistAddressRequest(workspace_id=1, name="Ours", address=ruled.vault["address"])
    asked = RequestChangeRequest.of(ADD_WHITELIST_ADDRESS, book)
    change = sdk(ruled.world, ADMIN).request_change(asked)
    sdk(ruled.world, EVE).confirm_change(ChangeRequest(workspace_id=1, change_id=change.change_id))
    told = run(ADMIN, "vault", "replace", "Treasury", "--json")
    assert told.exit_code == Exit.OK, told.output
    assert "Vault 'Treasury 2' in the place of 'Treasury'" in told.stderr
    assert "Any 2 of these 3 can spend from it" in told.stderr
    assert f"'Ours' leads to the old vault: {ruled.vault['address']}" in told.stderr
    change_id = json.loads(told.stdout)["change_id"]
    done = run(EVE, "change", "confirm", change_id)
    assert done.stdout == "Confirmed, and done: Replace a vault.\n", done.output
    assert "Signers: " in done.stderr
    # Made in the same second, they are listed by id.
    old, new = sorted(
        sdk(ruled.world, ADMIN).list_wallets(workspace_id=1), key=lambda one: one.replaces is not None
    )
    shown = run(ADMIN, "vault", "show", old.id).stdout
    assert f"Replaced:    by {new.id}" in shown
    assert old.address not in shown
    assert f"Replaces:    {old.id}" in run(ADMIN, "vault", "show", "Treasury 2").stdout
    assert "replaced" in run(ADMIN, "vault", "list").stdout
    again = run(ADMIN, "vault", "replace", old.id)
    assert (again.exit_code, "Any 2 of" in again.stderr) == (Exit.NOT_DECIDED, False)
    assert f"replaced already, by {new.id}" in again.stderr
    swept = run(ADMIN, "vault", "sweep", "Treasury", "--fee-rate", "2")
    (proposal,) = ruled.rows(ProposalRow)
    assert swept.stdout == f"Proposed: {proposal.id}\n", swept.output
    assert proposal.recipients == [new.address]
    assert "deposit" not in run(ADMIN, "vault", "history", "Treasury 2").stdout
    assert "deposit" in run(ADMIN, "vault", "history", "Treasury 2", "--with-replaced").stdout


def test_one_person_freezes_a_vault_and_two_unfreeze_it(ruled, run):
    client = sdk(ruled.world, ADMIN)

    def is_frozen() -> bool:
        return client.vault_controls(1, ruled.vault["id"]).is_frozen

    assert run(ADMIN, "vault", "freeze", "Treasury", answers="n\n").exit_code == Exit.DECLINED
    assert not is_frozen()
    told = run(ADMIN, "vault", "freeze", "Treasury", "--reason", "a stolen laptop")
    assert (told.stdout, is_frozen()) == ("The vault 'Treasury' is frozen.\n", True), told.output
    first = run(ADMIN, "vault", "unfreeze", "Treasury")
    assert "Payments go on once a second person unfreezes it" in first.stdout
    assert is_frozen()
    second = run(EVE, "vault", "unfreeze", "Treasury")
    assert (second.stdout, is_frozen()) == ("The vault 'Treasury' goes on.\n", False)


def test_a_command_that_succeeds_leaves_no_refusal_in_the_audit_log(ruled, run):
    before = ruled.world.audit_actions("workspace:1")
    told = run("alice@example.org", "vault", "show", "Treasury")
    assert (told.exit_code, "member " in told.stdout) == (Exit.OK, True), told.output
    assert ruled.world.audit_actions("workspace:1") == before


def test_whose_approval_is_asked_for_is_asked_of_a_second_person(ruled, run):
    wallets = sdk(ruled.world, ADMIN).list_wallets(workspace_id=1)
    vault = next(one for one in wallets if one.replaced_by is None)

    def approvers(*words: str) -> str:
        done = run(ADMIN, "vault", "approvers", vault.id, *words)
        assert done.exit_code == Exit.OK, done.output
        return done.stdout

    assert approvers().endswith("has no named approver.\n")
    change = approvers("--role", "Signer", "--member", "bob@example.org").split("change ")[1].split(".")[0]
    confirmed = run(EVE, "change", "confirm", change)
    assert "now none, from then on the role Signer; bob@example.org" in confirmed.stderr, confirmed.output
    assert approvers().endswith("from each of:\n  the role Signer\n  bob@example.org\n")
    ruled.deposit(100_000, to=vault.address)
    psbt_id = ruled.propose(20_000, wallet_id=vault.id).json()["psbt_id"]
    shown = run(ADMIN, "vault", "show", vault.id).stdout
    assert "from the role Signer\n  One approval has to come from bob@example.org\n" in shown
    assert "Waits for an approval from bob@example.org\n" in run(ADMIN, "proposal", "show", psbt_id).stdout
    run(EVE, "change", "confirm", approvers("--nobody").split("change ")[1].split(".")[0])
    assert approvers().endswith("has no named approver.\n")
    assert run(ADMIN, "vault", "approvers", vault.id, "--nobody", "--role", "1").exit_code == Exit.USAGE
