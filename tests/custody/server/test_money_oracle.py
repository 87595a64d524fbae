"""Random lives of payments over deposits as an exchange makes them, judged from outside; and the same on a
chain that forgets (P11-P16, P36), where a small model knows who decided what.

The oracle shares no code with the product: embit reads the PSBTs and derives the scripts, each amount is
proven by the previous transaction in the PSBT, sizes come from a formula, and what was asked and answered
comes from its own log. What is mined, and who spends what, is asked of the chain, whose rules are Bitcoin
Core's.
"""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from itertools import combinations, count
from random import Random
from typing import Any

import httpx
import pytest
from embit.descriptor import Descriptor
from embit.networks import NETWORKS
from embit.psbt import PSBT
from embit.script import address_to_scriptpubkey
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from custody.server.audit.verification import read_through
from custody.server.chain.backend import FoundOutput
from custody.server.proposals import choosing
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
from tests.custody.server.proposals.test_proving import make as ask_for_proof
from tests.support.custody import CAFE, SHOP, SIGNERS, Desk, ok, open_desk, refused, sign
from tests.support.examples import examples
from tests.support.history import require_truth
from tests.support.profiles import forward, grant, pay_profile, policy_of
from tests.support.regtest import mine_branch
from tests.support.replacing import bump, cancel, forget_mempool, take_back
from tests.support.token_desk import BOB, TokenDesk
from tests.support.two_people import DORA, ask, decide, ruled
from tests.support.wallets import foreign_script

Outpoint = tuple[str, int]
OVER = {"REJECTED", "CANCELLED", "EXPIRED", "INVALIDATED", "FAILED"}
DECISIONS = {"approve", "all approve", "one declines", "the last declines", "cancel", "freeze"}
UNPAID = frozenset({"INSUFFICIENT_FUNDS", "LOCKED_FUNDS"})
UNHEEDED = frozenset({"STATE_CONFLICT", "VALIDATION", "INSUFFICIENT_FUNDS"})
# Asks for everything.
SWEEP: dict[str, Any] = {"amounts_sats": None, "sweep": True}
# Derived by embit: more than a life uses.
INDEXES = range(60)

WHICH, RATE = st.integers(0, 9), st.sampled_from([2, 6, 20, 60])
AMOUNT = st.integers(5_000, 300_000)
TARGET = st.sampled_from(["vault", "vault", "vault", "address", "other vault", "profile", "stranger"])
PAYEE = st.sampled_from(["shop", "shop", "own", "other vault"])
# Each is in every life, in the order that is drawn; the first order is this one.
STEPS = (
    st.tuples(st.just("batch"), st.lists(st.tuples(TARGET, AMOUNT), min_size=1, max_size=6)),
    st.tuples(st.just("prove")),
    st.tuples(st.just("call"), st.integers(1, 100), st.sampled_from([True, False])),
    st.tuples(st.just("bump"), WHICH, RATE),
    st.tuples(st.just("pay"), PAYEE, AMOUNT, RATE),
    st.tuples(st.just("sign off"), WHICH),
    st.tuples(st.just("most"), PAYEE, RATE),
    st.tuples(st.just("name"), WHICH, RATE),
    st.tuples(st.just("corner"), st.booleans(), st.integers(400, 3_000), RATE),
    st.tuples(st.just("mine"), st.integers(1, 6)),
    st.tuples(st.just("send"), PAYEE, AMOUNT, RATE),
    st.tuples(st.just("take back"), WHICH, RATE),
    st.tuples(st.just("forward"), st.integers(2_000, 90_000), st.booleans()),
    st.tuples(st.just("batch"), st.lists(st.tuples(TARGET, AMOUNT), min_size=1, max_size=6)),
    st.tuples(st.just("limit"), st.sampled_from([10**9, 20_000, 300])),
    st.tuples(st.just("decline"), WHICH),
    st.tuples(st.just("pay"), PAYEE, AMOUNT, RATE),
    st.tuples(st.just("bump"), WHICH, RATE),
    st.tuples(st.just("sweep"), PAYEE, RATE),
)
LIVES = st.permutations(STEPS).flatmap(lambda steps: st.tuples(*steps))
# A vault with tokens keeps a coin of at least so many satoshi at its address, if it has one.
WORTH_KEEPING = 10_000
# Transactions that hang together: fewer than nodes take, so that a short life meets the bound.
TOGETHER = 3


@dataclass(frozen=True)
class Seen:
    """A PSBT as embit reads it; amounts in satoshi."""

    txid: str
    coins: dict[Outpoint, tuple[int, bytes]]
    outputs: list[tuple[bytes, int]]

    @classmethod
    def of(cls, base64: str) -> "Seen":
        psbt = PSBT.from_string(base64)
        coins = {}
        for item in psbt.inputs:
            made = item.non_witness_utxo
            assert made.txid() == item.txid
            paid = made.vout[item.vout]
            coins[item.txid.hex(), item.vout] = paid.value, paid.script_pubkey.data
        assert len(coins) == len(psbt.inputs), "each coin once"
        outputs = [(output.script_pubkey.data, output.value) for output in psbt.tx.vout]
        return cls(psbt.tx.txid().hex(), coins, outputs)

    @property
    def total(self) -> int:
        return sum(amount for amount, _ in self.coins.values())

    @property
    def fee(self) -> int:
        return self.total - sum(amount for _, amount in self.outputs)

    def vsize(self, inputs: int | None = None, more_outputs: int = 0) -> float:
        """With two signatures of 72 bytes at each input of 2-of-3 P2WSH."""
        weight = 42 + 418 * (len(self.coins) if inputs is None else inputs) + 172 * more_outputs
        return (weight + sum(4 * (9 + len(script)) for script, _ in self.outputs)) / 4


@dataclass
class Fact:
    """``pays``: what was asked, by script; ``rate`` in sat/vB."""

    psbt_id: str
    family: str
    kind: str
    seen: Seen
    pays: dict[bytes, int | None]
    rate: int
    created_at: datetime
    psbt: Psbt
    approved: set[str] = field(default_factory=set)
    declined: set[str] = field(default_factory=set)
    is_expired: bool = False
    # It ended while a signature of it was out: by a cancel, or by an approver where the others are enough.
    keeps_coins: bool = False
    # It was cancelled on its way, when its coins were gone.
    is_given_up: bool = False
    # Its signature by a key that was lost since counts no more, and is out.
    is_withdrawn: bool = False
    # Somebody whose approval was asked for has declined.
    is_refused: bool = False
    # It had signatures enough, and every approval that was asked for.
    is_met: bool = False

    @property
    def movement(self) -> int:
        return self.seen.fee + sum(amount for script, amount in self.seen.outputs if script in self.pays)

    @property
    def inputs(self) -> list[OutPoint]:
        return [OutPoint(*coin) for coin in self.seen.coins]


@dataclass
class Life:
    desk: Desk
    other: dict
    tokens: TokenDesk | None = None
    is_short: bool = False
    facts: list[Fact] = field(default_factory=list)
    records: dict[str, dict] = field(default_factory=dict)
    # Sent without the platform.
    outside: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.own = scripts_of(self.desk.vault["descriptor"])
        self.address = script_of(self.desk.vault["address"])
        self.profile = policy_of(self.desk.devices["alice"]).address(0, 0)
        self.addresses = {
            "address": self.desk.vault["address"],
            "other vault": self.other["address"],
            "profile": self.profile,
            "stranger": CAFE,
            "shop": SHOP,
        }

    def to(self, name: str) -> str:
        if name in {"vault", "own"}:
            return next(
                each["receive_address"] for each in self.desk.wallets() if each["id"] == self.vault_id
            )
        return self.addresses[name]

    @property
    def vault_id(self) -> str:
        return self.desk.vault["id"]

    # --- what happens ---------------------------------------------------------------------------------------

    def take(self, step: tuple) -> None:
        match step:
            case ("batch", payments):
                self.desk.batch(*((self.to(name), amount) for name, amount in payments), blocks=1)
            case ("limit", sats):
                self.desk.limit(f"{sats / 10**8:.8f}")
            case ("mine", blocks):
                self.desk.chain.mine(blocks)
            case ("lose", reason):
                self.lose(reason)
            case ("send" | "pay" | "name" | "corner" | "sweep" | "most" | "forward" | "prove" | "call", *_):
                self.propose(step)
            case (what, which, *rate) if self.facts:
                self.follow(what, self.facts[which % len(self.facts)], *rate)
        self.settle()

    def settle(self) -> None:
        # A session lasts for ten minutes, and a life for thirty-four steps.
        self.desk.world.clock.advance(seconds=15)
        self.desk.settle()
        if self.tokens is not None:
            self.tokens.look()

    def propose(self, step: tuple) -> None:
        match step:
            case ("send" | "pay" as what, payee, amount, rate):
                fact = self.send({self.to(payee): amount}, rate)
                if fact is not None and what == "pay":
                    self.follow("sign off", fact)
            case ("name", which, rate):
                self.name(which, rate)
            case ("corner", spends_address, left, rate):
                self.corner(spends_address, left, rate)
            case ("sweep", payee, rate):
                self.sweep(self.to(payee), rate)
            case ("most", payee, rate):
                self.most(self.to(payee), rate)
            case ("forward", amount, unconfirmed):
                self.forward(amount, unconfirmed)
            case ("prove",):
                self.prove()
            case ("call", amount, names) if self.tokens is not None:
                self.call(amount, **({"recipients": [BOB]} if names else {}))

    def name(self, which: int, rate: int) -> None:
        coins = [f"{txid}:{vout}" for txid, vout in self.unspent()]
        named = coins[which % len(coins) :][:2] if coins else []
        if named:
            fact = self.send({SHOP: 4_000}, rate, coins=named)
            assert fact is None or {f"{txid}:{vout}" for txid, vout in fact.seen.coins} == {*named}

    def corner(self, spends_address: bool, left: int, rate: int) -> None:
        """Pays all but a little of the coins at the vault's address, or of the others: what its bump needs
        is at the other place.
        """
        free = self.free(2)
        coins = [coin for coin, (_, script) in free.items() if (script == self.address) is spends_address]
        total = sum(free[coin][0] for coin in coins)
        if total > 50_000:
            named = [f"{txid}:{vout}" for txid, vout in coins]
            fact = self.send({SHOP: total - 2 * (150 + 105 * len(coins)) - left}, 2, coins=named)
            if fact is not None:
                self.follow("bump", fact, 10 * rate)
                for each in [each for each in self.facts if each.family == fact.family]:
                    self.follow("decline", each)

    def send(self, pays: dict[str, int | None], rate: int, **more: object) -> Fact | None:
        amounts = SWEEP if None in pays.values() else {"amounts_sats": [*pays.values()]}
        asked = {"recipients": [*pays], "fee_rate": str(rate), **amounts, **more}
        wanted = {script_of(address): amount for address, amount in pays.items()}
        answer = self.ask(
            lambda: self.desk.propose(**asked),
            lambda: "coins" not in more and self.could_pay(wanted, rate),
            UNPAID | ({"VALIDATION"} if "coins" in more else set()),
        )
        return None if answer is None else self.keep("send", answer, wanted, rate)

    def follow(self, what: str, fact: Fact, *rate: int) -> None:
        match what:
            case "decline":
                for name in ("bob", "carol"):
                    self.decline(name, fact)
            case "sign off" if fact.kind == "forward":
                if self.records[fact.psbt_id]["status"] == "PENDING":
                    self.desk.approve("alice", fact.psbt_id)
            case "sign off":
                for name in ("alice", "bob"):
                    self.approve(name, fact)
            case "bump" | "take back":
                ask = bump if what == "bump" else take_back
                self.version(fact, what, lambda: ask(self.desk, fact.psbt_id, fee_rate=str(*rate)), *rate)

    def approve(self, name: str, fact: Fact) -> None:
        answered(self.desk.submit(name, fact.psbt_id, self.desk.signed(name, fact.psbt_id)))

    def decline(self, name: str, fact: Fact) -> None:
        answered(self.desk.decline(name, fact.psbt_id))

    def sweep(self, to: str, rate: int) -> None:
        """A sweep can be bumped, out of its amount."""
        fact, more = self.send({to: None}, rate), 2 * rate
        if fact is not None and fact.seen.total > 2 * more * fact.seen.vsize():
            self.follow("bump", fact, more)
            assert [each.seen.coins for each in self.facts[-2:]] == [fact.seen.coins] * 2

    def call(self, amount: int, **named: object) -> None:
        """It may name whom it is for, and pays nobody."""
        answer = self.ask(lambda: self.tokens.call(1, "transfer", BOB, amount, **named))
        if answer is not None:
            data = {script: 0 for script, sats in Seen.of(answer["psbt_base64"]).outputs if not sats}
            self.follow("sign off", self.keep("call", answer, data, 0))

    def lose(self, reason: str) -> None:
        """Nobody can sign for the vault any more."""
        for name in ("bob", "carol"):
            (key,) = ok(self.desk.signers[name].get("/api/v1/keys"))
            lost = {"key_id": key["ID"], "reason": reason, "force": True}
            ok(self.desk.signers[name].post("/api/v1/revoke-key", lost))
        self.is_short = True

    def version(self, fact: Fact, what: str, ask: Any, rate: int) -> None:
        before = [each for each in self.facts if each.family == fact.family]
        pays = {} if what == "take back" else fact.pays
        answer = self.ask(ask, lambda: self.could_pay(pays, rate, before), UNHEEDED, fact.family)
        if answer is None:
            return
        new = self.keep("take back" if what == "take back" else fact.kind, answer, pays, rate, fact.family)
        for each in before:
            assert each.seen.coins.keys() & new.seen.coins.keys(), "two versions share a coin"
            assert new.seen.fee > each.seen.fee
            assert new.seen.fee / new.seen.vsize() > each.seen.fee / each.seen.vsize()
        added = new.seen.coins.keys() - {coin for each in before for coin in each.seen.coins}
        if added:
            self.require_needed(new, min(new.seen.coins[coin][0] for coin in added))

    @staticmethod
    def require_needed(new: Fact, smallest: int) -> None:
        """Without the smallest of the added coins the fee cannot be paid, nor any change left."""
        paid = sum(amount for script, amount in new.seen.outputs if script in new.pays)
        fee = new.rate * new.seen.vsize(len(new.seen.coins) - 1)
        least_change = max(330, new.rate * 105)
        assert new.seen.total - smallest - paid < fee + least_change + new.rate * 2, (
            "a coin that is not needed"
        )

    def most(self, to: str, rate: int) -> None:
        told = self.max_send(to, rate)
        amount = told["amount_sats"]
        if amount:
            fact = self.send({to: amount}, rate)
            assert fact is not None, told
            self.follow("decline", fact)
        if told["bound_by"] == "coins":
            answer = self.desk.propose(max(amount, 1_000) + 1, recipients=[to], fee_rate=str(rate))
            assert not answered(answer), told

    def max_send(self, to: str, rate: int) -> dict:
        query = {"workspace_id": 1, "wallet_id": self.vault_id, "recipients": to, "fee_rate": str(rate)}
        return ok(self.desk.admin.get("/api/v1/max-send", **query))

    def forward(self, amount: int, unconfirmed: bool) -> None:
        how = {"allow_unconfirmed": unconfirmed}
        answer = self.ask(lambda: forward(self.desk, "alice", amount, 1_000, **how))
        if answer is not None:
            fact = self.keep("forward", answer, {script_of(self.to("vault")): amount}, 0)
            assert fact.seen.fee == 1_000

    def prove(self) -> None:
        before = self.locked()
        asked = [ask_for_proof(self.desk) for _ in range(2)]
        assert [each.status_code for each in asked][1] == 409, "the same message twice in one block"
        assert (answered(asked[0]) and not self.is_short) or asked[0].status_code == 409
        assert self.locked() == before

    # --- what must hold -------------------------------------------------------------------------------------

    def ask(
        self,
        call: Any,
        could_pay: Callable[[], bool] = lambda: False,
        others: AbstractSet[str] = frozenset(),
        family: str = "",
    ) -> dict | None:
        """The answer; None for a refusal, which leaves nothing."""
        before = self.locked(), self.count()
        response = call()
        if answered(response):
            assert not self.is_short, "no quorum can sign it"
            return response.json()
        assert (self.locked(), self.count()) == before, response.text
        self.require_reason(response.json(), could_pay, others, family)
        return None

    def require_reason(
        self, problem: dict, could_pay: Callable[[], bool], _others: AbstractSet[str], _family: str
    ) -> None:
        """It is not for want of coins if there are."""
        assert problem["code"] not in UNPAID or not could_pay(), problem

    def could_pay(self, pays: dict[bytes, int | None], rate: int, versions: Sequence[Fact] = ()) -> bool:
        """Whether the coins that are free surely pay it, or a new version of these: with some change."""
        held = {coin: sats for each in versions for coin, (sats, _) in each.seen.coins.items()}
        free = sorted((sats for sats, _ in self.free(rate).values()), reverse=True)
        if versions and None in pays.values():
            free = []  # The bump of a sweep spends what the sweep does.
        paid = sum(sats or 0 for sats in pays.values())
        replaced = max((each.seen.fee for each in versions), default=0)
        for added in range(not held, len(free) + 1):
            inputs = len(held) + added
            vsize = 11 + 105 * inputs + 43 * (1 + len(pays))
            fee = max(rate * vsize, replaced + 2 * vsize)
            if sum(held.values()) + sum(free[:added]) - paid - fee > rate * (106 + inputs) + 330:
                return True
        return False

    def free(self, rate: int) -> dict[Outpoint, tuple[int, bytes]]:
        """Confirmed coins, with amount and script, that no proposal holds and that are worth their fee, but
        the one that stays at the address for tokens.
        """
        held = {coin for each in self.facts if self.lives(each) for coin in each.seen.coins}
        free = {
            place(each): (each.amount, each.script_pubkey) for each in self.found() if each.block is not None
        }
        free = {coin: each for coin, each in free.items() if coin not in held}
        at_address = sorted((sats, coin) for coin, (sats, script) in free.items() if script == self.address)
        for _, coin in [each for each in at_address if each[0] >= WORTH_KEEPING][:1] or at_address[-1:]:
            if self.tokens is not None:
                del free[coin]
        return {coin: each for coin, each in free.items() if each[0] > rate * 106}

    def keep(
        self, kind: str, answer: dict, pays: dict[bytes, int | None], rate: int, family: str | None = None
    ) -> Fact:
        psbt_id, seen = answer["psbt_id"], Seen.of(answer["psbt_base64"])
        fact = Fact(
            psbt_id,
            family or psbt_id,
            kind,
            seen,
            pays,
            rate,
            self.desk.world.clock(),
            Psbt.parse(answer["psbt_base64"]),
        )
        self.require_own(fact)
        self.require_outputs(fact)
        self.require_taken(fact)
        self.facts.append(fact)
        return fact

    def require_own(self, fact: Fact) -> None:
        own = {script_of(self.profile)} if fact.kind == "forward" else self.own
        assert {script for _, script in fact.seen.coins.values()} <= own | self.profile_change(fact)
        assert fact.seen.txid not in {each.seen.txid for each in self.facts}
        others = [each for each in self.facts if each.family != fact.family and self.lives(each)]
        assert not any(fact.seen.coins.keys() & each.seen.coins.keys() for each in others)

    def require_taken(self, fact: Fact) -> None:
        """By nodes: of what waits in their mempool no more hang together with it."""
        waiting = [fact.seen, *(each.seen for each in self.facts if self.is_waiting(each.seen.txid))]
        txids, linked = {each.txid for each in waiting}, {fact.seen.txid}
        for each in waiting * len(waiting):
            near = txids & {each.txid, *(txid for txid, _ in each.coins)}
            linked |= near if near & linked else set()
        assert len(linked) <= choosing.MAX_TOGETHER or fact.psbt_id != fact.family

    def is_waiting(self, txid: str) -> bool:
        known = self.desk.chain.transaction(txid)
        return known is not None and known.block is None

    def profile_change(self, fact: Fact) -> set[bytes]:
        """Where forwards leave their change."""
        forwards = [each for each in self.facts if each.kind == "forward"] if fact.kind == "forward" else []
        return {script for each in forwards for script, _ in each.seen.outputs} - self.own

    def require_outputs(self, fact: Fact) -> None:
        """What was asked, and at most one change; and a fee that is honest for exactly these coins."""
        seen, rate = fact.seen, fact.rate
        back = [(script, amount) for script, amount in seen.outputs if script not in fact.pays]
        sweeps = None in fact.pays.values()
        assert {script: amount for script, amount in seen.outputs if script in fact.pays} == {
            script: (seen.total - seen.fee if amount is None else amount)
            for script, amount in fact.pays.items()
        }
        assert len(back) <= (0 if sweeps else 1)
        if fact.kind in {"forward", "call"}:
            return
        assert all(script in self.own for script, _ in back)
        slack, vsize = rate * (len(seen.coins) + 1), seen.vsize()
        assert seen.fee >= rate * vsize - slack
        left_out = 0 if back or sweeps else rate * 43 + max(330, rate * 105)
        assert seen.fee <= rate * vsize + left_out + slack, "a fee that buys nothing"

    def look(self) -> None:
        listed = ok(self.desk.admin.get("/api/v1/psbt", workspace_id=1, limit=100))
        self.records = {each["psbt_id"]: each for each in listed}

    def check(self) -> None:
        self.look()
        # The signers may send elsewhere what had ended here, and whose coins another has by now.
        living = [each for each in self.facts if self.lives(each) and each.psbt_id not in self.outside]
        for one, two in combinations(living, 2):
            assert one.family == two.family or not one.seen.coins.keys() & two.seen.coins.keys()
        unspent = self.unspent()
        held = {
            coin: amount
            for each in self.facts
            if self.lives(each) and each.kind != "forward"
            for coin, (amount, _) in each.seen.coins.items()
            if coin in unspent
        }
        shown = next(each for each in self.desk.wallets() if each["id"] == self.vault_id)
        confirmed = sum(each.amount for each in self.found() if each.block is not None)
        assert (shown["confirmed_sats"], shown["unconfirmed_sats"]) == (
            confirmed,
            sum(unspent.values()) - confirmed,
        )
        assert shown["locked_sats"] == sum(held.values()) == sum(unspent[each] for each in held)
        require_truth(self.desk, limit=100)
        # At the dearest no coin is worth its fee, nor is the one that stays for tokens.
        for rate in () if self.is_short else (2, 1_000):
            told = self.max_send(SHOP, rate)
            parts = [told[f"{name}_sats"] for name in ("free", "locked", "waiting", "too_small", "kept")]
            assert min(parts) >= 0, told
            assert sum(parts) == sum(unspent.values()), told

    def lives(self, fact: Fact) -> bool:
        return fact.psbt_id not in self.records or self.records[fact.psbt_id]["status"] not in OVER

    def found(self) -> list[FoundOutput]:
        """What the chain and its mempool pay the vault, and nothing spends."""
        return [each for each in self.desk.chain.outputs_to(sorted(self.own)) if each.spent is None]

    def unspent(self) -> dict[Outpoint, int]:
        return {place(each): each.amount for each in self.found()}

    def locked(self) -> int:
        return sum(each["locked_sats"] for each in self.desk.wallets())

    def count(self) -> int:
        return len(ok(self.desk.admin.get("/api/v1/psbt", workspace_id=1, limit=100)))


def place(found: FoundOutput) -> Outpoint:
    return found.outpoint.txid, found.outpoint.vout


def scripts_of(descriptor: str) -> set[bytes]:
    parsed = Descriptor.from_string(descriptor.partition("#")[0])
    return {
        parsed.derive(index, branch_index=branch).script_pubkey().data
        for branch in (0, 1)
        for index in INDEXES
    }


def script_of(address: str) -> bytes:
    assert address.startswith(NETWORKS["regtest"]["bech32"])
    return address_to_scriptpubkey(address).data


def answered(response: httpx.Response) -> bool:
    """A refusal in words is as good as consent; a failure is not."""
    assert response.status_code in {200, 403, 409, 422}, response.text
    return response.status_code == 200


@pytest.mark.filterwarnings("error")
def test_p101_p104_money_from_outside(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choosing, "MAX_TOGETHER", TOGETHER)
    numbers = count()

    @settings(
        max_examples=examples(4),
        # A life takes seconds: shrinking one takes minutes, so a developer does that by hand.
        phases=(Phase.explicit, Phase.reuse, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )
    @given(st.sampled_from([True, False]), LIVES, st.sampled_from(["lost", "superseded"]))
    def live(has_token: bool, steps: tuple, reason: str) -> None:
        with open_desk(tmp_path_factory.mktemp(f"life{next(numbers)}") / "state") as desk:
            grant(desk, "Signer", "PAYMENT_INIT")
            tokens = TokenDesk(desk) if has_token else None
            if tokens is not None:
                tokens.fund(30_000, 40_000)
                tokens.started()
            life = Life(desk, ok(desk.create_vault("Second")), tokens)
            pay_profile(desk, "alice", 50_000)
            desk.batch(*((life.to(name), amount) for name, amount in FIRST))
            # Whatever is drawn, a payment is replaced, and the last ones in the end.
            for step in (*BEGINNING, *steps, *END, ("lose", reason), *SHORT):
                note(str(step))
                life.take(step)
                life.check()

    live()


BEGINNING = (
    ("limit", 300), ("most", "own", 2), ("limit", 10**9), ("send", "shop", 40_000, 2), ("bump", 0, 6),
    ("corner", False, 1_000, 6), *[("pay", "shop", 5_000, 2)] * TOGETHER, ("most", "shop", 2),
)  # fmt: skip
END = (("bump", -1, 90), ("take back", -1, 150), ("bump", -2, 90))
SHORT = (("prove",), ("send", "shop", 5_000, 2))
# Of an exchange: several outputs to one vault, to two, to a profile, and to others.
FIRST = (
    ("vault", 200_000),
    ("vault", 120_000),
    ("address", 250_000),
    ("other vault", 90_000),
    ("profile", 60_000),
    ("vault", 700_000),
)


# Signatures that a proposal needs, and signers.
M, N = 2, 3
# For a cycle, in satoshis; the last is never reached.
LIMITS = (300_000, 600_000, 10**9)
SESSION_SECONDS = 10 * 60
# Whose device is lost in some lives; the others are M still.
UNLUCKY = "carol"
NAME = st.sampled_from(SIGNERS)
# Whose approval is asked for: of those whose devices are never lost.
APPROVERS = st.sampled_from([(), ("alice",), ("bob",), ("alice", "bob")])
# Each is in every life, in the order that is drawn.
TURNS = (
    st.tuples(st.just("pay"), st.just("shop"), AMOUNT, RATE),
    st.tuples(st.just("mine"), st.integers(1, 3)),
    st.tuples(st.just("reorganise"), st.integers(1, 4), st.integers(1, 2)),
    st.tuples(st.just("bump"), WHICH, RATE),
    st.tuples(st.just("all approve"), WHICH),
    st.just(("forget",)),
    st.tuples(st.just("send"), st.just("shop"), AMOUNT, RATE),
    st.tuples(st.just("approve"), WHICH, NAME),
    st.tuples(st.just("cancel"), WHICH, st.booleans()),
    st.tuples(st.just("take back"), WHICH, RATE),
    st.tuples(st.just("deposit"), st.lists(AMOUNT, min_size=1, max_size=4)),
    st.tuples(st.just("rival"), WHICH, st.booleans()),
    st.tuples(st.just("limit by two"), st.sampled_from(LIMITS)),
    st.tuples(st.just("name"), WHICH, RATE),
    st.tuples(st.just("freeze"), WHICH, NAME),
    st.tuples(st.just("past the mempool"), WHICH),
    st.tuples(st.just("one declines"), WHICH, NAME),
    st.tuples(st.just("the last declines"), WHICH, st.sampled_from([("alice",), ("bob",)])),
    st.tuples(st.just("ask for"), APPROVERS),
    st.tuples(st.just("most"), st.just("shop"), RATE),
    st.just(("a device is lost",)),
    st.tuples(st.just("bind"), st.booleans()),
    st.tuples(st.just("ask for"), APPROVERS),
    st.tuples(st.just("elsewhere"), WHICH),
    st.tuples(st.just("deposit back"), WHICH),
    st.tuples(st.just("pay"), st.just("shop"), AMOUNT, RATE),
    st.just(("two weeks pass",)),
    st.tuples(st.just("send"), st.just("shop"), AMOUNT, RATE),
    st.just(("two weeks pass",)),
    st.tuples(st.just("all approve"), WHICH),
    st.tuples(st.just("reorganise"), st.integers(1, 4), st.integers(1, 2)),
)


# Cancelled, or declined by who is asked for, while signatures of it are out: its coins are kept, and it
# counts for the limits.
KEPT = (
    ("send", "shop", 50_000, 6), ("approve", -1, "alice"), ("cancel", -1, False), ("ask for", ("bob",)),
    ("send", "shop", 20_000, 6), ("approve", -1, "alice"), ("approve", -1, "carol"),
    ("one declines", -1, "bob"),
    ("send", "shop", 30_000, 6), ("approve", -1, "alice"), ("approve", -1, "carol"),
)  # fmt: skip


@dataclass
class Turning(Life):
    """On a chain that forgets. After every step the platform says what the chain and the decisions say, locks
    exactly the coins of what may still move, counts exactly that against the limits, and has let nothing
    through that the vault's limit for a cycle does not.
    """

    limit: int = 0
    is_lost: bool = False
    deposits: list[str] = field(default_factory=list)
    asked: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        self.signed_in = self.now

    @property
    def now(self) -> datetime:
        return self.desk.world.clock()

    # --- what happens ---------------------------------------------------------------------------------------

    def begin(self, limit: int) -> None:
        self.limit = limit
        self.desk.limit(format_btc(Sats(limit)), per_cycle=True)
        self.desk.enter("Shop", SHOP)
        ruled(self.desk.world, self.desk.admin)
        self.settle()

    def take(self, step: tuple) -> None:
        match step:
            case ("deposit", amounts):
                paid = [(self.to("vault"), amount) for amount in amounts]
                self.deposits.append(self.desk.batch(*paid, (CAFE, 5_000), blocks=0))
            case ("limit by two", limit):
                self.limit_by_two(limit)
            case ("bind", is_bound):
                self.bind(is_bound=is_bound)
            case ("ask for", names):
                self.ask_for(names)
            case ("a device is lost",):
                self.lose_one()
            case ("two weeks pass",):
                self.pass_two_weeks()
            case (what, which, *how) if what in DECISIONS:
                if self.facts:
                    self.decide(what, self.facts[which % len(self.facts)], *how)
            case _:
                self.turn(step)
                super().take(step)
        self.settle()

    def decide(self, what: str, fact: Fact, *how: Any) -> None:
        match what:
            case "approve":
                self.approve(*how, fact)
            case "all approve":
                for name in SIGNERS:
                    self.approve(name, fact)
            case "one declines":
                self.decline(*how, fact)
            case "the last declines":
                fact = next((each for each in self.facts if self.status(each) == "PENDING"), fact)
                self.ask_for(*how)
                for name in (*sorted(set(SIGNERS) - set(self.asked)), *self.asked):
                    (self.decline if name in self.asked else self.approve)(name, fact)
            case "cancel":
                self.cancel(fact, *how)
            case "freeze":
                self.freeze(fact, *how)

    def turn(self, step: tuple) -> None:
        """What happens outside of the platform."""
        chain = self.desk.chain
        match step:
            case ("elsewhere", which) if self.facts:
                fact = self.facts[which % len(self.facts)]
                self.outside.add(fact.psbt_id)
                chain.broadcast(self.final(fact.psbt))
            case ("rival", which, is_mined):
                self.spend_outside(which, is_mined=is_mined)
            case ("past the mempool", which) if self.facts:
                self.mine_past_the_mempool(self.facts[which % len(self.facts)])
            case ("deposit back", which) if self.deposits:
                txid = self.deposits[which % len(self.deposits)]
                if chain.transaction(txid) is not None:
                    self.desk.take_deposit_back(txid)
            case ("forget",):
                forget_mempool(self.desk)
            case ("reorganise", depth, more):
                mine_branch(chain, depth, depth + more)

    def limit_by_two(self, limit: int) -> None:
        """What was let through before stays, and counts for the new one (P56)."""
        terms = {"transaction_limit": format_btc(Sats(limit)), "cycle_period": "M", "cycle_day": 1}
        self.by_two("update-vault", **terms)
        self.limit = limit

    def bind(self, *, is_bound: bool) -> None:
        """A life goes on with payments to the book's own; a send elsewhere is none (P54)."""
        self.by_two("update-vault-controls", only_address_book=is_bound, maker_may_approve=True)
        if is_bound:
            # A draft is made first: without coins or limits for it, that is said.
            code = self.desk.propose(10_000, recipients=[CAFE]).json()["code"]
            assert code in {"NOT_IN_ADDRESS_BOOK", "VAULT_LIMIT_EXCEEDED", *UNPAID}

    def ask_for(self, names: tuple[str, ...]) -> None:
        """One approval comes from each of them: what has it already goes on."""
        keys = [f"user:{self.desk.user_ids[name]}" for name in names]
        bounds = {"only_address_book": False, "maker_may_approve": True, "approvers": keys}
        self.by_two("update-vault-controls", **bounds)
        self.asked = names

    def has_all(self, fact: Fact) -> bool:
        return len(fact.approved) >= M and fact.approved.issuperset(self.asked)

    def by_two(self, path: str, **body: object) -> None:
        change = ok(ask(self.desk.admin, path, vault_id=self.vault_id, **body))
        ok(decide(self.desk.world.as_user(DORA), change))

    def freeze(self, fact: Fact, name: str) -> None:
        """Until two unfreeze it nothing is proposed, approved or sent, whatever was under way (P53)."""
        self.desk.freeze()
        refused(self.desk.propose(10_000, recipients=[SHOP]), 409, "VAULT_FROZEN")
        is_news = self.status(fact) == "PENDING" and name not in fact.approved
        answer = self.desk.submit(name, fact.psbt_id, sign(self.desk.devices[name], fact.psbt))
        assert answer.status_code != 200 or not is_news, answer.text
        self.settle()
        self.check_decisions()
        self.desk.unfreeze()

    def approve(self, name: str, fact: Fact) -> None:
        is_open = self.status(fact) == "PENDING"
        answer = self.desk.submit(name, fact.psbt_id, sign(self.desk.devices[name], fact.psbt))
        if self.is_lost and name == UNLUCKY:
            refused(answer, 403, "KEY_REVOKED")
        elif is_open and answer.status_code == 200:
            assert name not in fact.declined
            fact.approved.add(name)
            fact.is_met |= self.has_all(fact)
        elif answer.status_code != 200:
            assert not is_open or self.has_newer(fact) or name in fact.declined, answer.text
            assert answer.json()["code"] == "STATE_CONFLICT"
        self.settle()

    def decline(self, name: str, fact: Fact) -> None:
        is_open = self.status(fact) == "PENDING"
        answer = self.desk.decline(name, fact.psbt_id)
        if is_open and answer.status_code == 200:
            assert name not in fact.approved
            fact.declined.add(name)
            fact.is_refused |= name in self.asked
            is_given_out = bool(fact.approved) or fact.is_withdrawn
            fact.keeps_coins = is_given_out and fact.is_refused and len(fact.declined) <= N - M
        elif is_open:
            assert name in fact.approved or self.has_newer(fact), answer.text
        self.settle()

    def cancel(self, fact: Fact, releases: bool) -> None:
        was = self.status(fact)
        answer = cancel(self.desk, fact.psbt_id, release_coins=releases)
        is_kept = was == "REJECTED" and fact.keeps_coins
        if was not in {"PENDING", "CANCELLED"} and not is_kept:
            if answer.status_code != 200:
                assert answer.json()["code"] == "STATE_CONFLICT", answer.text
                return
            # Its coins are gone: it is given up, though they may come back.
            assert any(self.desk.chain.transaction(each.txid) is None for each in fact.inputs)
            fact.is_given_up, fact.keeps_coins = True, answer.json()["coins_kept"]
            return
        if was == "PENDING":
            fact.keeps_coins = bool(fact.approved) or fact.is_withdrawn
        if releases:
            fact.keeps_coins = False
        assert ok(answer)["coins_kept"] == fact.keeps_coins

    def lose_one(self) -> None:
        """What it signed and still waits is asked again; what is finalised goes on."""
        self.is_lost = True
        (key,) = ok(self.desk.signers[UNLUCKY].get("/api/v1/keys"))
        lost = {"key_id": key["ID"], "reason": "lost"}
        ok(self.desk.signers[UNLUCKY].post("/api/v1/revoke-key", lost))
        for fact in self.facts:
            if self.status(fact) == "PENDING" and UNLUCKY in fact.approved:
                fact.approved.remove(UNLUCKY)
                fact.is_withdrawn = True

    def pass_two_weeks(self) -> None:
        for fact in self.facts:
            fact.is_expired |= self.status(fact) == "PENDING"
            fact.keeps_coins = False
        # Twice, they end a limit's month.
        self.desk.world.clock.advance(days=16)
        self.desk.world.platform.background.expiry()()

    def mine_past_the_mempool(self, fact: Fact) -> None:
        """Where its coins are in blocks, and no block spends them."""
        chain = self.desk.chain
        made = [chain.transaction(each.txid) for each in fact.inputs]
        spent = [chain.spender(each) for each in fact.inputs]
        if all(one and one.block for one in made) and not any(one and one.block for one in spent):
            self.outside.add(fact.psbt_id)
            mine_branch(chain, 0, 1, [self.final(fact.psbt)])

    def spend_outside(self, which: int, *, is_mined: bool) -> None:
        """By the vault's signers, in a transaction that the platform never saw."""
        coins = [each for each in self.found() if each.block is not None and each.amount > 3_000]
        if not coins:
            return
        coin, policy = coins[which % len(coins)], self.desk.policy
        known = self.desk.chain.transaction(coin.outpoint.txid)
        assert known is not None
        chain, index = next(
            (chain, index)
            for chain in (RECEIVE, CHANGE)
            for index in INDEXES
            if policy.script_pubkey(chain, index) == coin.script_pubkey
        )
        spent = CoinToSpend(coin.outpoint, coin.amount, chain, index, known.transaction)
        paid = TxOut(Sats(coin.amount - 2_000), foreign_script(f"out{which}"))
        rival = self.final(build_psbt(policy, [spent], [paid], 0))
        if is_mined:
            mine_branch(self.desk.chain, 0, 1, [rival])
        else:
            self.desk.chain.broadcast(rival)

    def final(self, psbt: Psbt) -> Transaction:
        for name in SIGNERS[:M]:
            psbt = sign(self.desk.devices[name], psbt)
        return finalise(psbt, self.desk.policy)

    def settle(self) -> None:
        """What the workers of a server do until nothing is left to do."""
        # Whatever waits to be tried again is due: no job waits for longer.
        self.desk.world.clock.advance(seconds=90)
        if (self.now - self.signed_in).total_seconds() >= SESSION_SECONDS:
            self.signed_in = self.now
            self.desk.later()
        while self.desk.outbox.run_due() | self.desk.watcher.look():
            pass
        self.look()

    # --- what must hold -------------------------------------------------------------------------------------

    def keep(
        self, kind: str, answer: dict, pays: dict[bytes, int | None], rate: int, family: str | None = None
    ) -> Fact:
        moved, fact = self.moved(), super().keep(kind, answer, pays, rate, family)
        before = moved.pop(fact.family, 0)
        assert fact.movement <= max(before, self.limit - sum(moved.values()))
        assert family or not any(self.desk.chain.spender(each) for each in fact.inputs)
        self.settle()
        return fact

    def require_reason(
        self, problem: dict, _could_pay: Callable[[], bool], others: AbstractSet[str], family: str
    ) -> None:
        """One for the limit says the truth, and nothing that is let through elsewhere is refused."""
        if problem["code"] != "VAULT_LIMIT_EXCEEDED":
            assert problem["code"] in others, problem
            return
        moved, figures = self.moved(), problem["figures"]
        assert sats_of(figures["used"]) == sum(moved.values())
        before, requested = moved.pop(family, 0), sats_of(figures["requested"])
        assert requested > max(before, self.limit - sum(moved.values()))

    def check(self) -> None:
        super().check()
        self.check_decisions()

    def check_decisions(self) -> None:
        for fact in self.facts:
            self.check_status(fact)
        held = {each for fact in self.facts if self.lives(fact) for each in fact.inputs}
        assert self.desk.locks().keys() == held
        moved = sum(self.moved().values())
        mine = ok(self.desk.admin.get("/api/v1/get-my-limits", workspace_id=1))
        (vaults,) = [each for each in self.desk.wallets() if each["id"] == self.vault_id]
        assert {sats_of(each["Used"]) for each in (mine, vaults["detailed_vault_limits"])} == {moved}

    def check_status(self, fact: Fact) -> None:
        record = self.records[fact.psbt_id]
        status, known = record["status"], self.desk.chain.transaction(fact.seen.txid)
        if status in {"SIGNED", "STALLED", "BROADCASTING", "CONFIRMED"} and not fact.is_met:
            assert self.has_all(fact) or fact.psbt_id in self.outside, "sent without an approval"
            fact.is_met = self.has_all(fact)
        assert record["collected_signatures"] == min(M, len(fact.approved))
        assert sum(each["is_signed"] for each in record["signers"]) == len(fact.approved)
        if known is not None and known.block is not None:
            shown = status, record["block_height"], record["block_hash"]
            assert shown == ("CONFIRMED", known.block.height, known.block.hash)
            return
        assert status != "CONFIRMED"
        spends = [self.desk.chain.spender(each) for each in fact.inputs]
        if known is not None:
            assert status == "BROADCASTING", fact
        elif any(one and one.block and one.txid != fact.seen.txid for one in spends):
            assert status in OVER, (status, fact)
            fact.keeps_coins = False
        elif status == "PENDING":
            # What is asked for no more goes on, unless a newer version lives.
            assert not self.has_all(fact) or (self.has_newer(fact) and not fact.is_met)
            missing = len(fact.approved) >= M and not self.has_all(fact)
            assert len(record["waits_for"]) >= missing
            assert len(fact.declined) <= N - M
            assert not fact.is_refused
            assert not fact.is_expired
        elif len(fact.declined) > N - M or fact.is_refused:
            assert status in OVER
        elif fact.is_met and not fact.is_given_up:
            self.check_not_forgotten(status, fact)

    def check_not_forgotten(self, status: str, fact: Fact) -> None:
        """Signed, and in no block and no mempool: something keeps it out, or another proposal has its coins
        by now.
        """
        if status in OVER:
            others = (each for each in self.facts if each is not fact and self.lives(each))
            assert any(set(each.inputs) & set(fact.inputs) for each in others), (status, fact)
        else:
            chain = self.desk.chain
            gone = (chain.transaction(each.txid) is None or chain.spender(each) for each in fact.inputs)
            assert any(gone), (status, fact)

    def lives(self, fact: Fact) -> bool:
        return super().lives(fact) or fact.keeps_coins

    def moved(self) -> dict[str, int]:
        """What each family of the running cycle counts for."""
        since = self.now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        moved: dict[str, int] = {}
        for fact in self.facts:
            if fact.created_at >= since and self.lives(fact):
                moved[fact.family] = max(fact.movement, moved.get(fact.family, 0))
        return moved

    def has_newer(self, fact: Fact) -> bool:
        """A version of it was made later and lives."""
        later = self.facts[self.facts.index(fact) + 1 :]
        return any(each.family == fact.family and self.status(each) not in OVER for each in later)

    def status(self, fact: Fact) -> str:
        return self.records[fact.psbt_id]["status"]


def sats_of(text: str) -> int:
    return int(Decimal(text) * 100_000_000)


@pytest.mark.slow("whole lives, of which the test above judges the payments")
def test_p36_p53_p54_p56_p111_money_on_a_chain_that_turns(tmp_path_factory: pytest.TempPathFactory) -> None:
    numbers = count()

    @settings(
        max_examples=examples(4),
        phases=(Phase.explicit, Phase.reuse, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )
    @given(st.sampled_from(LIMITS), st.permutations(TURNS).flatmap(lambda steps: st.tuples(*steps)))
    def live(limit: int, steps: tuple) -> None:
        state = tmp_path_factory.mktemp(f"turning{next(numbers)}") / "state"
        with open_desk(state, chance=Random(0)) as desk:
            life = Turning(desk, ok(desk.create_vault("Second")))
            desk.batch(*((life.to(name), amount) for name, amount in FIRST))
            life.begin(limit)
            for step in (*KEPT, *steps):
                note(str(step))
                life.take(step)
                life.check()
            assert read_through(desk.store).findings == ()

    live()
