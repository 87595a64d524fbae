"""Random lives of proposals on a chain that forgets,
against what the chain itself and a small model say (P11–P16, P36).

The model knows who decided what; what is mined, and who spends what, it asks of the chain, whose rules are
Bitcoin Core's. After every step the platform must say the same, lock exactly the coins of what may still
move, and count exactly that against the limits,
and let nothing through that the vault's limit for a cycle does not. Two people change that limit and bind the
vault to its address book; a freeze stops everything and leaves it as it was.
"""

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import httpx
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from custody.server.audit.verification import read_through
from custody.server.store.models import ChainCoinRow
from multisig import (
    CHANGE,
    RECEIVE,
    CoinToSpend,
    OutPoint,
    Psbt,
    Sats,
    Transaction,
    TxOut,
    build_psbt,
    finalise,
    format_btc,
)
from tests.support.custody import CAFE, SHOP, SIGNERS, Desk, ok, open_desk, refused, sign
from tests.support.examples import examples
from tests.support.history import require_truth
from tests.support.regtest import mine_branch
from tests.support.replacing import forget_mempool
from tests.support.two_people import DORA, ask, decide, ruled
from tests.support.wallets import foreign_script

pytestmark = pytest.mark.slow("whole lives: test_money_oracle.py judges shorter ones")

M, N = 2, 3
# Nothing holds a coin or counts any more.
OVER = {"REJECTED", "CANCELLED", "EXPIRED", "INVALIDATED", "FAILED"}
OUTSIDE_FEE = 2_000
SESSION_MINUTES = 10
MOST_PROPOSALS = 8
# For a cycle; the last is never reached.
LIMITS = (30_000_000, 60_000_000, 1_000_000_000)
UNHEEDED = {"STATE_CONFLICT", "VALIDATION", "INSUFFICIENT_FUNDS"}
# Whose device is lost in the middle of some lives; the others are M still.
UNLUCKY = "carol"
# The engine refuses blocks from the future, and the test's clock begins in the past.
MOST_WEEKS = 6
# More addresses than a life ever uses.
INDEXES = range(60)
INDEX = st.integers(0, 1_000)
NAME = st.sampled_from(SIGNERS)


@dataclass
class Fact:
    """What the model knows of a proposal."""

    psbt: Psbt
    movement: int
    created_at: datetime
    family: str = ""
    approved: set[str] = field(default_factory=set)
    declined: set[str] = field(default_factory=set)
    is_expired: bool = False
    # It was cancelled while a signature of it was out.
    keeps_coins: bool = False
    # It was cancelled on its way, when its coins were gone.
    is_given_up: bool = False
    # Its signature by a key that was lost since counts no more, and is out.
    is_withdrawn: bool = False

    @property
    def txid(self) -> str:
        return self.psbt.tx.txid

    @property
    def inputs(self) -> list[OutPoint]:
        return [txin.outpoint for txin in self.psbt.tx.inputs]

    @property
    def is_decided(self) -> bool:
        return len(self.approved) >= M or len(self.declined) > N - M


class Money(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self._folder = TemporaryDirectory()
        self._opened = open_desk(Path(self._folder.name) / "state", chance=Random(0))
        self.desk: Desk = self._opened.__enter__()
        self.facts: dict[str, Fact] = {}
        self.records: dict[str, dict] = {}
        self._signed_in = self._now
        self.weeks = 0
        self.limit = 0
        self.is_lost = False
        self.deposits: list[str] = []

    def teardown(self) -> None:
        assert read_through(self.desk.store).findings == ()
        self._opened.__exit__(None, None, None)
        self._folder.cleanup()

    @property
    def _now(self) -> datetime:
        return self.desk.world.clock()

    # What happens

    @initialize(
        amounts=st.lists(st.integers(100_000, 50_000_000), min_size=1, max_size=4),
        limit=st.sampled_from(LIMITS),
    )
    def begin(self, amounts: list[int], limit: int) -> None:
        self._batch(amounts)
        self.desk.mine(6)
        self.limit = limit
        self.desk.limit(format_btc(Sats(limit)), per_cycle=True)
        self.desk.enter("Shop", SHOP)
        ruled(self.desk.world, self.desk.admin)

    @rule(limit=st.sampled_from(LIMITS))
    def two_people_change_the_limit(self, limit: int) -> None:
        """What was let through before stays, and counts for the new one (P56)."""
        changed = {"transaction_limit": format_btc(Sats(limit)), "cycle_period": "M", "cycle_day": 1}
        self._by_two("update-vault", **changed)
        self.limit = limit
        self._settle()

    @rule(is_bound=st.booleans())
    def two_people_bind_the_vault_to_the_address_book(self, *, is_bound: bool) -> None:
        """A life goes on with payments to the book's own; a send elsewhere is none (P54)."""
        self._by_two("update-vault-controls", only_address_book=is_bound, maker_may_approve=True)
        if is_bound:
            # A draft is made first, where there are coins for it.
            code = self.desk.propose(10_000, recipients=[CAFE]).json()["code"]
            # Without coins or limits for it, that is said first.
            said_first = {"INSUFFICIENT_FUNDS", "LOCKED_FUNDS", "VAULT_LIMIT_EXCEEDED"}
            assert code in {"NOT_IN_ADDRESS_BOOK", *said_first}
        self._settle()

    @precondition(lambda self: self.facts)
    @rule(index=INDEX, name=NAME)
    def one_freezes_the_vault_and_two_unfreeze_it(self, index: int, name: str) -> None:
        """Between the two nothing is proposed, approved or sent, whatever was under way (P53)."""
        psbt_id, fact = self._choose(index)
        self.desk.freeze()
        refused(self.desk.propose(10_000, recipients=[SHOP]), 409, "VAULT_FROZEN")
        is_news = self._status(psbt_id) == "PENDING" and name not in fact.approved
        answer = self.desk.submit(name, psbt_id, self._signature(name, fact))
        assert answer.status_code != 200 or not is_news, answer.text
        self._settle()
        self.desk.unfreeze()
        self._settle()

    def _by_two(self, path: str, **body: object) -> None:
        change = ok(ask(self.desk.admin, path, vault_id=self.desk.vault["id"], **body))
        ok(decide(self.desk.world.as_user(DORA), change))

    @rule(amounts=st.lists(st.integers(1_000, 50_000_000), min_size=1, max_size=4))
    def deposit(self, amounts: list[int]) -> None:
        self._batch(amounts)
        self._settle()

    def _batch(self, amounts: list[int]) -> None:
        """As an exchange pays: several outputs to the vault, and one to somebody else."""
        to = self.desk.wallets()[0]["receive_address"]
        self.deposits.append(self.desk.batch(*((to, amount) for amount in amounts), (CAFE, 5_000), blocks=0))

    @rule(count=st.integers(1, 3))
    def mine(self, count: int) -> None:
        self.desk.chain.mine(count)
        self._settle()

    @precondition(lambda self: len(self.facts) < MOST_PROPOSALS)
    @rule(amount=st.integers(10_000, 40_000_000))
    def propose(self, amount: int) -> None:
        answer = self.desk.propose(amount, recipients=[SHOP])
        if answer.status_code != 200:
            self._check_refusal(answer, {"INSUFFICIENT_FUNDS", "LOCKED_FUNDS"})
            return
        self._proposed(answer.json()["psbt_id"], amount)

    @precondition(lambda self: len(self.facts) < MOST_PROPOSALS)
    @rule(names=st.booleans())
    def propose_the_most(self, *, names: bool) -> None:
        """What is said to be the most is accepted; of coins that are named, what those hold."""
        vault = {"workspace_id": 1, "wallet_id": self.desk.vault["id"], "recipients": [SHOP], "fee_rate": "2"}
        told = ok(self.desk.admin.get("/api/v1/max-send", **vault))
        if told["amount_sats"] == 0:
            return
        if not names:
            answer = ok(self.desk.propose(told["amount_sats"], recipients=[SHOP], fee_rate="2"))
            self._proposed(answer["psbt_id"], told["amount_sats"])
            return
        held = self._held()
        coins = [
            f"{coin.txid}:{coin.vout}"
            for coin in self.desk.rows(ChainCoinRow, ChainCoinRow.spent_by.is_(None))
            if coin.height is not None and OutPoint(coin.txid, coin.vout) not in held
        ][:2]
        answer = self.desk.propose(1_000, recipients=[SHOP], fee_rate="2", coins=coins or ["00" * 32 + ":0"])
        if answer.status_code != 200:
            self._check_refusal(answer, {"INSUFFICIENT_FUNDS", "LOCKED_FUNDS", "VALIDATION"})
            return
        self._proposed(answer.json()["psbt_id"], 1_000)
        (fact,) = list(self.facts.values())[-1:]
        assert sorted(map(str, fact.inputs)) == sorted(coins)

    def _proposed(self, psbt_id: str, amount: int) -> None:
        held, moved = self._held(), self._moved()
        fact = self._remember(psbt_id, amount)
        assert sum(moved.values()) + fact.movement <= self.limit
        for outpoint in fact.inputs:
            assert outpoint not in held
            assert self.desk.chain.spender(outpoint) is None
        self._settle()

    @precondition(lambda self: 0 < len(self.facts) < MOST_PROPOSALS)
    @rule(index=INDEX, rate=st.integers(2, 150))
    def bump(self, index: int, rate: int) -> None:
        psbt_id, fact = self._choose(index)
        self._replace(psbt_id, self._paid(psbt_id, fact), fee_rate=str(rate))

    @precondition(lambda self: 0 < len(self.facts) < MOST_PROPOSALS)
    @rule(index=INDEX, rate=st.integers(2, 150))
    def take_back(self, index: int, rate: int) -> None:
        psbt_id, _ = self._choose(index)
        self._replace(psbt_id, 0, "cancels_psbt_id", fee_rate=str(rate))

    def _replace(self, psbt_id: str, paid: int, field: str = "replaces_psbt_id", **how: object) -> None:
        answer = self.desk.propose(recipients=[], amounts_sats=None, **{field: psbt_id}, **how)
        family, moved = self.facts[psbt_id].family, self._moved()
        if answer.status_code != 200:
            self._check_refusal(answer, UNHEEDED, family)
            return
        new = self._remember(answer.json()["psbt_id"], paid, family=family)
        before = moved.pop(family, 0)
        assert new.movement <= max(before, self.limit - sum(moved.values()))
        assert set(self.facts[psbt_id].inputs) <= set(new.inputs)
        self._settle()

    @precondition(lambda self: self.facts)
    @rule(index=INDEX, releases=st.booleans())
    def cancel(self, index: int, releases: bool) -> None:
        psbt_id, fact = self._choose(index)
        was = self._status(psbt_id)
        answer = self.desk.tell("cancel-psbt", psbt_id=psbt_id, release_coins=releases)
        if was not in {"PENDING", "CANCELLED"} and answer.status_code == 200:
            # Its coins are gone: it is given up, though they may come back.
            assert any(self.desk.chain.transaction(each.txid) is None for each in fact.inputs)
            fact.is_given_up, fact.keeps_coins = True, answer.json()["coins_kept"]
            self._settle()
            return
        if was not in {"PENDING", "CANCELLED"}:
            assert answer.json()["code"] == "STATE_CONFLICT", answer.text
            return
        if was == "PENDING":
            fact.keeps_coins = bool(fact.approved) or fact.is_withdrawn
        if releases:
            fact.keeps_coins = False
        assert ok(answer)["coins_kept"] == fact.keeps_coins
        self._settle()

    @precondition(lambda self: self.facts)
    @rule(index=INDEX, name=NAME)
    def approve(self, index: int, name: str) -> None:
        psbt_id, fact = self._choose(index)
        is_open = self._status(psbt_id) == "PENDING"
        answer = self.desk.submit(name, psbt_id, self._signature(name, fact))
        if self.is_lost and name == UNLUCKY:
            refused(answer, 403, "KEY_REVOKED")
        elif is_open and answer.status_code == 200:
            fact.approved.add(name)
            fact.declined.discard(name)
        elif answer.status_code != 200:
            assert not is_open or self._has_newer(psbt_id), answer.text
            assert answer.json()["code"] == "STATE_CONFLICT"
        self._settle()

    @precondition(lambda self: self.facts)
    @rule(index=INDEX)
    def everybody_approves(self, index: int) -> None:
        for name in SIGNERS:
            self.approve(index, name)

    @precondition(lambda self: self.facts)
    @rule(index=INDEX, name=NAME)
    def decline(self, index: int, name: str) -> None:
        psbt_id, fact = self._choose(index)
        is_open = self._status(psbt_id) == "PENDING"
        answer = self.desk.decline(name, psbt_id)
        if is_open and answer.status_code == 200 and name not in fact.approved:
            fact.declined.add(name)
        elif is_open and answer.status_code != 200:
            assert self._has_newer(psbt_id), answer.text
        self._settle()

    @precondition(lambda self: self.facts and not self.is_lost)
    @rule()
    def a_device_is_lost(self) -> None:
        """What it signed and still waits is asked again; what is finalised goes on."""
        self.is_lost = True
        (key_id,) = {
            signer["key_id"]
            for record in self.records.values()
            for signer in record["signers"]
            if signer["user_id"] == str(self.desk.user_ids[UNLUCKY])
        }
        ok(self.desk.signers[UNLUCKY].post("/api/v1/revoke-key", {"key_id": key_id, "reason": "lost"}))
        for psbt_id, fact in self.facts.items():
            if self._status(psbt_id) == "PENDING" and UNLUCKY in fact.approved:
                fact.approved.remove(UNLUCKY)
                fact.is_withdrawn = True
        self._settle()

    @precondition(lambda self: self.weeks < MOST_WEEKS)
    @rule()
    def two_weeks_pass(self) -> None:
        self.weeks += 2
        for psbt_id, fact in self.facts.items():
            fact.is_expired |= self._status(psbt_id) == "PENDING"
            fact.keeps_coins = False
        self.desk.world.clock.advance(days=15)
        self.desk.world.platform.background.expiry()()
        self._settle()

    @precondition(lambda self: self.facts)
    @rule(index=INDEX)
    def signers_finish_it_elsewhere(self, index: int) -> None:
        _, fact = self._choose(index)
        self.desk.chain.broadcast(self._final(fact))
        self._settle()

    @rule(index=INDEX, is_mined=st.booleans())
    def coin_is_spent_outside(self, index: int, is_mined: bool) -> None:
        rival = self._rival(index)
        if rival is None:
            return
        if is_mined:
            mine_branch(self.desk.chain, 0, 1, [rival])
        else:
            self.desk.chain.broadcast(rival)
        self._settle()

    @precondition(lambda self: self.facts)
    @rule(index=INDEX)
    def a_miner_takes_it_past_the_mempool(self, index: int) -> None:
        """Where its coins are in blocks, and no block spends them."""
        _, fact = self._choose(index)
        made = [self.desk.chain.transaction(each.txid) for each in fact.inputs]
        spent = [self.desk.chain.spender(each) for each in fact.inputs]
        if all(one and one.block for one in made) and not any(one and one.block is not None for one in spent):
            mine_branch(self.desk.chain, 0, 1, [self._final(fact)])
        self._settle()

    @precondition(lambda self: self.deposits)
    @rule(index=INDEX)
    def its_sender_takes_a_deposit_back(self, index: int) -> None:
        txid = self.deposits[index % len(self.deposits)]
        if self.desk.chain.transaction(txid) is not None:
            self.desk.take_deposit_back(txid)
        self._settle()

    @rule()
    def the_node_forgets_its_mempool(self) -> None:
        forget_mempool(self.desk)
        self._settle()

    @rule(depth=st.integers(1, 4), more=st.integers(1, 2))
    def reorganise(self, depth: int, more: int) -> None:
        mine_branch(self.desk.chain, depth, depth + more)
        self._settle()

    # What must hold

    def _settle(self) -> None:
        """What the workers of a server do until nothing is left to do; then everything is compared."""
        # Whatever waits to be tried again is due: no job waits for longer.
        self.desk.world.clock.advance(seconds=90)
        self._stay_signed_in()
        while self.desk.outbox.run_due() | self.desk.watcher.look():
            pass
        listed = ok(self.desk.admin.get("/api/v1/psbt", workspace_id=1, limit=100))
        self.records = {record["psbt_id"]: record for record in listed}
        self._check_statuses()
        self._check_coins()
        self._check_limits()

    def _check_statuses(self) -> None:
        for psbt_id, fact in self.facts.items():
            record = self.records[psbt_id]
            status, known = record["status"], self.desk.chain.transaction(fact.txid)
            assert record["collected_signatures"] == len(fact.approved)
            if known is not None and known.block is not None:
                assert status == "CONFIRMED", (status, fact)
                shown = record["block_height"], record["block_hash"]
                assert shown == (known.block.height, known.block.hash)
                continue
            assert status != "CONFIRMED"
            if known is not None:
                assert status == "BROADCASTING", (status, fact)
            elif self._has_mined_rival(fact):
                assert status in OVER, (status, fact)
            elif status == "PENDING":
                assert not fact.is_decided
                assert not fact.is_expired
            elif len(fact.declined) > N - M:
                assert status in OVER
            elif len(fact.approved) >= M and not fact.is_given_up:
                self._check_not_forgotten(status, fact)

    def _check_not_forgotten(self, status: str, fact: Fact) -> None:
        """Signed, and in no block and no mempool: something keeps it out,
        or another proposal has its coins by now.
        """
        if status in OVER:
            others = self._held(without=fact)
            assert any(outpoint in others for outpoint in fact.inputs), (status, fact)
        else:
            assert any(self._is_gone(outpoint) for outpoint in fact.inputs), (status, fact)

    def _check_coins(self) -> None:
        locked = self.desk.locks().keys()
        assert locked == self._held()
        unspent = [found for found in self._outputs() if found.spent is None]
        (vault,) = self.desk.wallets()
        assert vault["confirmed_sats"] == sum(found.amount for found in unspent if found.block is not None)
        assert vault["unconfirmed_sats"] == sum(found.amount for found in unspent if found.block is None)
        assert vault["locked_sats"] == sum(found.amount for found in unspent if found.outpoint in locked)
        require_truth(self.desk, limit=100)

    def _check_limits(self) -> None:
        moved = sum(self._moved().values())
        for limits in (
            ok(self.desk.admin.get("/api/v1/get-my-limits", workspace_id=1)),
            self.desk.wallets()[0]["detailed_vault_limits"],
        ):
            assert _sats(limits["Used"]) == moved

    def _check_refusal(self, answer: httpx.Response, others: set[str], family: str | None = None) -> None:
        """One for the limit says the truth, and nothing that is let through elsewhere is refused."""
        problem = answer.json()
        if problem["code"] != "VAULT_LIMIT_EXCEEDED":
            assert problem["code"] in others, answer.text
            return
        moved, figures = self._moved(), problem["figures"]
        assert _sats(figures["used"]) == sum(moved.values())
        before, requested = moved.pop(family or "", 0), _sats(figures["requested"])
        assert requested > max(before, self.limit - sum(moved.values()))

    # What the model asks

    def _moved(self) -> dict[str, int]:
        """What each family of the running cycle counts for."""
        since = self._now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        moved: dict[str, int] = {}
        for psbt_id, fact in self.facts.items():
            if fact.created_at >= since and self._holds(psbt_id):
                moved[fact.family] = max(fact.movement, moved.get(fact.family, 0))
        return moved

    def _choose(self, index: int) -> tuple[str, Fact]:
        return list(self.facts.items())[index % len(self.facts)]

    def _remember(self, psbt_id: str, paid: int, family: str | None = None) -> Fact:
        record = self.desk.proposal(psbt_id)
        psbt = Psbt.parse(record["psbt_base64"])
        movement = paid + record["fee_sats"]
        self.facts[psbt_id] = fact = Fact(psbt, movement, self._now, family or psbt_id)
        return fact

    def _paid(self, psbt_id: str, fact: Fact) -> int:
        return fact.movement - self.records[psbt_id]["fee_sats"]

    def _has_newer(self, psbt_id: str) -> bool:
        """A version of it was made later and lives."""
        ids, family = list(self.facts), self.facts[psbt_id].family
        later = ids[ids.index(psbt_id) + 1 :]
        return any(self.facts[each].family == family and self._status(each) not in OVER for each in later)

    def _holds(self, psbt_id: str) -> bool:
        return self._status(psbt_id) not in OVER or self.facts[psbt_id].keeps_coins

    def _status(self, psbt_id: str) -> str:
        return self.records[psbt_id]["status"]

    def _held(self, without: Fact | None = None) -> set[OutPoint]:
        return {
            outpoint
            for psbt_id, fact in self.facts.items()
            if fact is not without and self._holds(psbt_id)
            for outpoint in fact.inputs
        }

    def _outputs(self):
        policy = self.desk.policy
        return self.desk.chain.outputs_to(
            [policy.script_pubkey(branch, index) for branch in (RECEIVE, CHANGE) for index in INDEXES]
        )

    def _has_mined_rival(self, fact: Fact) -> bool:
        spends = [self.desk.chain.spender(outpoint) for outpoint in fact.inputs]
        return any(spend and spend.block is not None and spend.txid != fact.txid for spend in spends)

    def _is_gone(self, outpoint: OutPoint) -> bool:
        """Its transaction left the chain and the mempool, or another transaction spends it."""
        return (
            self.desk.chain.transaction(outpoint.txid) is None
            or self.desk.chain.spender(outpoint) is not None
        )

    def _signature(self, name: str, fact: Fact) -> Psbt:
        return sign(self.desk.devices[name], fact.psbt)

    def _final(self, fact: Fact) -> Transaction:
        signed = fact.psbt
        for name in SIGNERS[:M]:
            signed = sign(self.desk.devices[name], signed)
        return finalise(signed, self.desk.policy)

    def _rival(self, index: int) -> Transaction | None:
        """A transaction of the vault's signers that the platform never saw."""
        coins = [found for found in self._outputs() if found.spent is None and found.block is not None]
        if not coins:
            return None
        coin = coins[index % len(coins)]
        known = self.desk.chain.transaction(coin.outpoint.txid)
        assert known is not None
        branch, place = next(
            (branch, number)
            for branch in (RECEIVE, CHANGE)
            for number in INDEXES
            if self.desk.policy.script_pubkey(branch, number) == coin.script_pubkey
        )
        amount = coin.amount - OUTSIDE_FEE
        if amount < 1_000:
            return None
        spent = CoinToSpend(coin.outpoint, coin.amount, branch, place, known.transaction)
        psbt = build_psbt(self.desk.policy, [spent], [TxOut(Sats(amount), foreign_script(f"out{index}"))], 0)
        return self._final(Fact(psbt, 0, self._now))

    def _stay_signed_in(self) -> None:
        if (self._now - self._signed_in).total_seconds() < SESSION_MINUTES * 60:
            return
        self._signed_in = self._now
        self.desk.later()


def _sats(text: str) -> int:
    return int(Decimal(text) * 100_000_000)


TestMoney = Money.TestCase
TestMoney.settings = settings(
    max_examples=examples(4),
    stateful_step_count=25,
    # A life takes seconds: shrinking one takes minutes, so a developer does that by hand.
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
