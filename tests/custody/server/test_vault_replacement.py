"""Replacing a vault (P108 to P110): two people, the same limits, moves into the replacement alone."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from random import Random

import pytest
from sqlalchemy import select

from custody.server.audit.verification import read_through
from custody.server.store.models import ChainCoinRow, CoinLockRow, KeyRow, ProposalRow, VaultSignerRow
from multisig import RECEIVE
from tests.support import two_people
from tests.support.custody import CAFE, SHOP, SIGNERS, ok, refused
from tests.support.examples import drawn
from tests.support.history import require_truth
from tests.support.platform import key_offer, register_key, seed
from tests.support.profiles import forward, grant, pay_profile
from tests.support.replacing import bump, made, meanwhile, status, take_back
from tests.support.token_desk import BOB, TokenDesk
from tests.support.two_people import decide, second_administrator


@pytest.fixture
def dora(desk):
    """A second manager of the workspace."""
    return second_administrator(desk.world)


def ask(desk, name="Treasury 2", **body):
    return two_people.ask(desk.admin, "replace-vault", **{"vault_id": desk.vault["id"], "name": name} | body)


def more_accounts(desk):
    for name in SIGNERS:
        offered = key_offer(desk.devices[name], accounts=4)["vault_accounts"]
        ok(register_key(desk.signers[name], desk.devices[name], vault_accounts=offered))


def replaced(desk, dora, **body):
    """What the platform answers; the new vault is ``answer["vault"]``."""
    return ok(decide(dora, ok(ask(desk, **body))))["answer"]


def sweep(desk, person=None, **body):
    return desk.of_vault("sweep-vault", person, **body)


def lose_key(desk, name, vault_id):
    """The vault's key of theirs is lost."""
    with desk.store.write() as db:
        signer = VaultSignerRow.vault_id == vault_id, VaultSignerRow.user_id == desk.user_ids[name]
        key = db.get_one(KeyRow, db.scalar(select(VaultSignerRow.key_id).where(*signer)))
        key.status, key.revoked_reason = "revoked", "lost"


def vaults(desk):
    return {each["id"]: each for each in desk.wallets()}


class TestReplace:
    def test_p108_one_person_replaces_no_vault_with_or_without_the_rule(self, desk, dora):
        body = {"name": "Treasury 2"}
        refused(desk.of_vault("replace-vault", **body), 409, "SECOND_PERSON_NEEDED")
        change = ok(ask(desk))
        refused(decide(desk.admin, change), 403, "PERMISSION_DENIED")
        # A signer's role does not manage the workspace.
        refused(decide(desk.signers["bob"], change), 403, "PERMISSION_DENIED")
        assert len(desk.wallets()) == 1
        ok(decide(dora, change))
        assert len(desk.wallets()) == 2

    def test_the_new_vault_has_the_old_ones_people_limit_and_controls(self, desk, dora):
        desk.bind(only_address_book=True, maker_may_approve=False)
        desk.limit("0.5", cycle_period="W", cycle_day=3, per_cycle=True)
        new = replaced(desk, dora)["vault"]
        old = vaults(desk)[desk.vault["id"]]
        assert (old["replaced_by"], new["replaces"]) == (new["id"], old["id"])
        assert "replaces" not in old
        assert "replaced_by" not in new
        same = ("m", "n", "network")
        assert [new[field] for field in same] == [old[field] for field in same]
        assert [each["user_id"] for each in new["signers"]] == [each["user_id"] for each in old["signers"]]
        assert new["descriptor"] != old["descriptor"]
        bounds = ("Limit", "CyclePeriod", "CycleDay", "PerCycle")
        assert [new["detailed_vault_limits"][field] for field in bounds] == [
            old["detailed_vault_limits"][field] for field in bounds
        ]
        controls = ok(desk.admin.get("/api/v1/vault-controls", workspace_id=1, vault_id=new["id"]))
        assert (controls["only_address_book"], controls["maker_may_approve"]) == (True, False)
        assert desk.audited()[-3:] == [
            "VAULT_CREATED",
            "VAULT_REPLACED",
            "CHANGE_CONFIRMED",
        ]

    def test_the_second_person_reads_who_signs_from_then_on(self, desk, dora):
        """Also where that stays as it is."""
        change = ok(ask(desk))
        assert (change["body"]["m"], change["names"]["vault_id"]) == (desk.vault["m"], "Treasury")
        assert change["body"]["signers"] == [desk.user_ids[name] for name in SIGNERS]
        assert all(f"{name}@example.org" in change["names"]["signers"] for name in SIGNERS)
        ok(decide(dora, change, "decline"))
        people = [desk.user_ids[name] for name in SIGNERS[:2]]
        new = replaced(desk, dora, m=1, signers=people)["vault"]
        assert (new["m"], [each["user_id"] for each in new["signers"]]) == (1, [str(one) for one in people])

    def test_what_nobody_signed_is_cancelled_and_what_was_signed_goes_on(self, desk, dora):
        desk.deposit(300_000, 300_000, 300_000)
        kept, dropped = (made(desk.propose(100_000, recipients=[to])) for to in (SHOP, CAFE))
        desk.approve("alice", kept)
        answer = replaced(desk, dora)
        assert (answer["cancelled_psbt_ids"], answer["signed_psbt_ids"]) == ([dropped], [kept])
        desk.approve("bob", kept)
        desk.settle()
        assert desk.proposal(kept)["status"] == "BROADCASTING"
        # Until it is mined it may still be bumped, or taken back.
        later = made(bump(desk, kept, fee_rate="20"))
        made(take_back(desk, later, fee_rate="40"))

    def test_what_cannot_be_made_is_not_asked_for(self, desk):
        refused(ask(desk, name="TREASURY"), 409, "STATE_CONFLICT")
        for body in ({"m": 4}, {"signers": [1, 1]}, {"signers": [999_999]}):
            refused(ask(desk, **body), 422, "VALIDATION")
        assert not ok(desk.admin.get("/api/v1/changes", workspace_id=desk.workspace_id))

    def test_one_change_waits_for_each_vault(self, desk):
        more_accounts(desk)
        vaults = [desk.vault["id"], ok(desk.create_vault("Other"))["id"]]
        for first, second in (vaults, vaults[::-1]):
            waiting = [ok(ask(desk, vault_id=first)), ok(ask(desk, "Other 2", vault_id=second))]
            refused(ask(desk, "Treasury 3", vault_id=first), 409, "STATE_CONFLICT")
            for change in waiting:
                ok(decide(desk.admin, change, "decline"))

    def test_too_few_are_left_to_move_its_coins(self, desk, dora):
        desk.deposit(100_000)
        for name in SIGNERS[:2]:
            (key,) = ok(desk.signers[name].get("/api/v1/keys"))
            lost = {"key_id": key["ID"], "reason": "lost", "force": True}
            ok(desk.signers[name].post("/api/v1/revoke-key", lost))
            desk.devices[name] = seed(len(name) + 10)
            ok(register_key(desk.signers[name], desk.devices[name]))
        told = refused(ask(desk), 409, "STATE_CONFLICT")
        assert "their key is lost (2)" in told["detail"]

    def test_a_frozen_vault_is_not_replaced_also_where_it_is_frozen_between_the_two(self, desk, dora):
        change = ok(ask(desk))
        desk.freeze()
        refused(decide(dora, change), 409, "VAULT_FROZEN")
        refused(ask(desk, name="Another"), 409, "VAULT_FROZEN")
        assert len(desk.wallets()) == 1


class TestSweep:
    def test_superseded_keys_move_everything_and_no_limit_or_book_stops_it(self, desk, dora):
        """P109: bound to an empty book, and with nothing left of its limit."""
        desk.deposit(3_000_000, 2_000_000)
        desk.bind(only_address_book=True)
        desk.limit("0")
        for number, name in enumerate(SIGNERS, 21):
            (key,) = ok(desk.signers[name].get("/api/v1/keys"))
            gone = {"key_id": key["ID"], "reason": "superseded", "force": True}
            ok(desk.signers[name].post("/api/v1/revoke-key", gone))
            ok(register_key(desk.signers[name], seed(number)))
        new = ok(decide(dora, ok(ask(desk))))["answer"]["vault"]
        query = {"workspace_id": desk.workspace_id, "wallet_id": desk.vault["id"], "fee_rate": "2"}
        most = ok(desk.admin.get("/api/v1/max-send", recipients=new["address"], **query))
        (psbt_id,) = ok(sweep(desk, fee_rate="2"))["psbt_ids"]
        record = desk.proposal(psbt_id)
        assert record["recipients"] == [new["address"]]
        assert [most["amount_sats"]] == record["amounts_sats"]
        log = ok(desk.admin.get("/api/v1/get-logs", org_uid=1, workspace_uid=1, order="newest"))["logs"]
        (told,) = [each["description"] for each in log if each["action"] == "PROPOSAL_CREATED"]
        assert "5000000 sat with the fee" in told
        desk.sign_off(psbt_id)
        desk.settle()
        desk.mine()
        assert status(desk, psbt_id) == ["CONFIRMED"]
        after = vaults(desk)
        assert after[desk.vault["id"]]["confirmed_sats"] == 0
        assert after[new["id"]]["confirmed_sats"] == 5_000_000 - record["fee_sats"]
        assert after[desk.vault["id"]]["detailed_vault_limits"]["Used"] == "0.00000000"

    def test_p109_it_pays_nothing_but_its_replacement(self, desk, dora):
        desk.deposit(3_000_000, 2_000_000)
        new = replaced(desk, dora)["vault"]
        more_accounts(desk)
        other = ok(desk.create_vault("Other"))
        for answer in (
            desk.sweep(other["address"]),
            desk.propose(100_000, 100_000, recipients=[new["address"], SHOP]),
            # The change would stay.
            desk.propose(100_000, recipients=[new["address"]]),
            desk.propose(recipients=[], amounts_sats=None, op_return="hello"),
        ):
            told = refused(answer, 409, "STATE_CONFLICT")
            assert "is replaced by Treasury 2" in told["detail"]
        assert desk.rows(ProposalRow) == []

    def test_p109_a_payment_that_was_drafted_before_is_not_stored_after(self, desk, dora):
        """The replacement is confirmed between the draft and the write lock."""
        desk.deposit(3_000_000)
        with meanwhile(lambda: replaced(desk, dora)):
            refused(desk.propose(100_000), 409, "STATE_CONFLICT")
        assert desk.rows(ProposalRow) == []

    def test_a_bump_of_a_move_counts_for_no_limit_either_and_a_cancel_returns_it(self, desk, dora):
        desk.deposit(3_000_000)
        desk.limit("0.00002")
        replaced(desk, dora)
        (psbt_id,) = ok(sweep(desk, fee_rate="2"))["psbt_ids"]
        again = made(bump(desk, psbt_id, fee_rate="5"))
        assert [row.movement_sats for row in desk.rows(ProposalRow)] == [0, 0]
        made(take_back(desk, again, fee_rate="8"))

    def test_more_coins_than_one_transaction_takes_are_disjoint_proposals(self, desk, dora, monkeypatch):
        monkeypatch.setattr("custody.server.rules.selection.MAX_INPUTS", 2)
        desk.deposit(*(1_000_000 + number for number in range(5)))
        replaced(desk, dora)
        psbt_ids = ok(sweep(desk))["psbt_ids"]
        assert len(psbt_ids) == 3
        assert len(desk.rows(CoinLockRow)) == 5
        refused(sweep(desk), 409, "LOCKED_FUNDS")
        desk.deposit(700_000)
        assert len(ok(sweep(desk))["psbt_ids"]) == 1, "what comes later"

    def test_a_freeze_of_the_new_one_stops_it_until_two_unfreeze(self, desk, dora):
        desk.deposit(1_000_000, 900_000)
        new = replaced(desk, dora)["vault"]
        (psbt_id,) = ok(sweep(desk, fee_rate="2"))["psbt_ids"]
        signed = desk.signed("alice", psbt_id)
        desk.approve("bob", psbt_id)
        of_new = replace(desk, vault=new)
        of_new.freeze()
        refused(sweep(desk), 409, "VAULT_FROZEN")
        refused(desk.submit("alice", psbt_id, signed), 409, "VAULT_FROZEN")
        of_new.unfreeze()
        ok(desk.submit("alice", psbt_id, signed))
        of_new.freeze()
        desk.settle()
        assert desk.proposal(psbt_id)["failure_code"] == "vault-frozen"
        of_new.unfreeze()
        desk.settle()
        assert status(desk, psbt_id) == ["BROADCASTING"]

    def test_the_tokens_go_first_and_the_last_sweep_takes_the_coin_for_their_calls(self, desk, dora):
        tokens = TokenDesk(desk)
        tokens.fund(200_000)
        uid = tokens.started()
        desk.deposit(300_000, to=desk.policy.address(RECEIVE, 5))
        new = replaced(desk, dora)["vault"]
        refused(tokens.create(), 409, "STATE_CONFLICT")
        (first,) = ok(sweep(desk, fee_rate="2"))["psbt_ids"]
        assert tokens.finish(first)["status"] == "CONFIRMED"
        kept = vaults(desk)[desk.vault["id"]]["confirmed_sats"]
        assert kept > 100_000
        assert "sats kept for its tokens" in refused(sweep(desk), 422, "INSUFFICIENT_FUNDS")["detail"]
        for call in (("transfer", new["address"], 900), ("transfer_ownership", new["address"])):
            assert vaults(desk)[desk.vault["id"]]["confirmed_sats"] > 100_000
            tokens.done(uid, *call)
        (last,) = ok(sweep(desk, fee_rate="2"))["psbt_ids"]
        assert tokens.finish(last)["status"] == "CONFIRMED"
        assert vaults(desk)[desk.vault["id"]]["confirmed_sats"] == 0
        # The new vault calls.
        desk.vault = new
        tokens.fund(100_000)
        assert tokens.done(uid, "transfer", BOB, 5)["status"] == "CONFIRMED"
        tokens.check()

    def test_a_sweep_says_what_is_set_aside_and_stays(self, desk, dora):
        desk.deposit(400_000, 300_000)
        (row,) = desk.rows(ChainCoinRow, ChainCoinRow.amount_sats == 300_000)
        coin, old = f"{row.txid}:{row.vout}", desk.vault
        ok(desk.of_vault("set-coin-aside", coin=coin, reason="the auditor's"))
        replaced(desk, dora)
        said = ok(sweep(desk, fee_rate="2"))
        assert (len(said["psbt_ids"]), said["set_aside_sats"]) == (1, 300_000)
        assert coin not in map(str, desk.coins(said["psbt_ids"][0]))
        desk.sign_off(said["psbt_ids"][0])
        desk.settle()
        assert "set aside" in refused(sweep(desk), 422, "INSUFFICIENT_FUNDS")["detail"]
        ok(desk.tell("release-coin", vault_id=old["id"], coin=coin))
        assert ok(sweep(desk, fee_rate="2"))["set_aside_sats"] == 0

    def test_nothing_goes_into_a_vault_that_cannot_pay_on_and_another_takes_its_place(self, desk, dora):
        more_accounts(desk)
        grant(desk, "Signer", "PAYMENT_INIT")
        desk.deposit(400_000)
        first, people = desk.vault, [desk.user_ids[name] for name in SIGNERS]
        desk.bind(only_address_book=True)
        second = replaced(desk, dora, m=2, signers=people[1:])["vault"]
        (early,) = ok(sweep(desk))["psbt_ids"]
        lose_key(desk, "carol", second["id"])
        assert vaults(desk)[second["id"]]["lacks_signers"]
        pay_profile(desk, "alice", 500_000)
        desk.vault = second
        for answer in (
            sweep(desk, vault_id=first["id"]),
            desk.sweep(to=second["address"], wallet_id=first["id"]),
            forward(desk, "alice", 100_000),
        ):
            assert "Replace that vault first" in refused(answer, 409, "STATE_CONFLICT")["detail"]
        # It gets a replacement all the same: the first vault's coins go there.
        answer = replaced(desk, dora, name="Treasury 3", m=1, signers=people[:2])
        assert answer["cancelled_psbt_ids"] == [early]
        (psbt_id,) = ok(sweep(desk, vault_id=first["id"]))["psbt_ids"]
        assert desk.proposal(psbt_id)["recipients"] == [answer["vault"]["address"]]
        desk.vault = first
        desk.sign_off(psbt_id)
        desk.settle()
        desk.mine()
        assert vaults(desk)[answer["vault"]["id"]]["confirmed_sats"] > 390_000


class Life:
    """Replaced vaults at random, everything by two at once."""

    def __init__(self, desk, dora, chance):
        self.desk, self.dora, self.chance = desk, dora, chance
        self.came = 0

    def step(self, name):
        shown = vaults(self.desk)
        getattr(self, name)(shown[self.chance.choice(sorted(shown))])
        self.desk.settle()
        self.check()

    def replace(self, old):
        """Asked for twice, by a double click, and once under another name; confirmed twice at once."""
        body = {"vault_id": old["id"]}
        asked = [ask(self.desk, name=f"{old['name']} {which}", **body) for which in ("A", "A", "B")]
        if "replaced_by" in old or asked[0].status_code != 200:
            assert {answer.json()["code"] for answer in asked} <= {"STATE_CONFLICT", "KEY_ACCOUNTS_EXHAUSTED"}
            return
        first, same = map(ok, asked[:2])
        assert first == same
        refused(asked[2], 409, "STATE_CONFLICT")
        with ThreadPoolExecutor(2) as pool:
            answers = list(pool.map(lambda each: decide(self.dora, each), (first, first)))
        assert sorted(answer.status_code for answer in answers) == [200, 409]

    def sweep(self, old):
        people = (self.desk.admin, self.dora)
        with ThreadPoolExecutor(2) as pool:
            answers = list(pool.map(lambda one: sweep(self.desk, one, vault_id=old["id"]), people))
        codes = {answer.json()["code"] for answer in answers if answer.status_code != 200}
        allowed = {"LOCKED_FUNDS", "INSUFFICIENT_FUNDS"} if "replaced_by" in old else {"STATE_CONFLICT"}
        assert codes <= allowed

    def freeze(self, old):
        desk = replace(self.desk, vault=old)
        desk.freeze()
        refused(sweep(desk), 409, "VAULT_FROZEN")
        desk.unfreeze()

    def deposit(self, to):
        amount = self.chance.randint(50_000, 5_000_000)
        self.desk.deposit(amount, to=to["address"], blocks=self.chance.choice((0, 6)))
        self.came += amount

    def sign(self, old):
        for each in self.desk.rows(
            ProposalRow, ProposalRow.status == "PENDING", ProposalRow.vault_id == old["id"]
        ):
            self.desk.vault = old
            self.desk.sign_off(each.id)

    def mine(self, _vault):
        self.desk.mine()

    def check(self):
        """One follows another, and what came is there or on its way to the next, less the fees."""
        shown = vaults(self.desk)
        live = [one["id"] for one in shown.values() if "replaced_by" not in one]
        assert len(live) == 1
        line = [live[0]]
        while "replaces" in shown[line[-1]]:
            line.append(shown[line[-1]]["replaces"])
        assert set(line) == set(shown)
        proposals = self.desk.rows(ProposalRow)
        for each in proposals:
            later = line[: line.index(each.vault_id)]
            assert each.recipients[0] in {shown[one]["address"] for one in later}
        sent = sum(each.fee_sats for each in proposals if each.status in {"BROADCASTING", "CONFIRMED"})
        held = sum(one["confirmed_sats"] + one["unconfirmed_sats"] for one in shown.values())
        assert held == self.came - sent
        self.desk.vault = shown[line[0]]
        if len(line) > 1:
            require_truth(self.desk, 100, *line[1:])


STEPS = ("replace", "sweep", "sweep", "sign", "sign", "freeze", "deposit", "mine", "mine")


@pytest.mark.parametrize("salt", drawn(range(1_000), 2, of="lives of replaced vaults"))
def test_p110_whatever_happens_the_coins_go_where_two_people_sent_them(desk, dora, salt):
    more_accounts(desk)
    chance = Random(salt)
    life = Life(desk, dora, chance)
    for name in ("deposit", "replace", "sweep", *chance.choices(STEPS, k=14)):
        life.step(name)
    assert not read_through(desk.store).findings
