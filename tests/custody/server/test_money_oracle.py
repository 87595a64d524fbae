"""Random lives of payments over deposits as an exchange makes them, judged from outside.

The oracle shares no code with the product: embit reads the PSBTs and derives the scripts, each amount is
proven by the previous transaction in the PSBT, sizes come from a formula, and what was asked and answered
comes from its own log.
"""

from dataclasses import dataclass, field
from itertools import combinations, count
from typing import Any

import httpx
import pytest
from embit.descriptor import Descriptor
from embit.networks import NETWORKS
from embit.psbt import PSBT
from embit.script import address_to_scriptpubkey
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from custody.server.proposals import choosing
from tests.custody.server.proposals.test_proving import make as ask_for_proof
from tests.support.custody import CAFE, SHOP, Desk, ok, open_desk
from tests.support.examples import examples
from tests.support.history import require_truth
from tests.support.profiles import forward, grant, pay_profile, policy_of
from tests.support.replacing import bump, take_back
from tests.support.token_desk import BOB, TokenDesk

Outpoint = tuple[str, int]
OVER = {"REJECTED", "CANCELLED", "EXPIRED", "INVALIDATED", "FAILED"}
# Asks for everything.
SWEEP: dict[str, Any] = {"amounts_sats": None, "sweep": True}
# Derived by embit: more than a life uses.
INDEXES = range(40)

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


@dataclass
class Life:
    desk: Desk
    other: dict
    tokens: TokenDesk | None = None
    is_short: bool = False
    facts: list[Fact] = field(default_factory=list)
    statuses: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.own = scripts_of(self.desk.vault["descriptor"])
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
            case ("send" | "pay" | "name" | "sweep" | "most" | "forward" | "prove" | "call", *_):
                self.propose(step)
            case (what, which, *rate) if self.facts:
                self.follow(what, self.facts[which % len(self.facts)], *rate)
        # A session lasts for ten minutes, and a life for thirty-four steps.
        self.desk.world.clock.advance(seconds=15)
        self.desk.settle()
        if self.tokens is not None:
            self.tokens.look()

    def propose(self, step: tuple) -> None:
        match step:
            case ("send", payee, amount, rate):
                self.send({self.to(payee): amount}, rate)
            case ("pay", payee, amount, rate):
                if self.send({self.to(payee): amount}, rate) is not None:
                    self.follow("sign off", self.facts[-1])
            case ("name", which, rate):
                self.name(which, rate)
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

    def send(self, pays: dict[str, int | None], rate: int, **more: object) -> Fact | None:
        amounts = SWEEP if None in pays.values() else {"amounts_sats": [*pays.values()]}
        asked = {"recipients": [*pays], "fee_rate": str(rate), **amounts, **more}
        answer = self.ask(lambda: self.desk.propose(**asked))
        wanted = {script_of(address): amount for address, amount in pays.items()}
        return None if answer is None else self.keep("send", answer, wanted, rate)

    def follow(self, what: str, fact: Fact, *rate: int) -> None:
        match what:
            case "decline":
                for name in ("bob", "carol"):
                    answered(self.desk.decline(name, fact.psbt_id))
            case "sign off" if fact.kind == "forward":
                if self.statuses[fact.psbt_id] == "PENDING":
                    self.desk.approve("alice", fact.psbt_id)
            case "sign off":
                for name in ("alice", "bob"):
                    answered(self.desk.submit(name, fact.psbt_id, self.desk.signed(name, fact.psbt_id)))
            case "bump" | "take back":
                ask = bump if what == "bump" else take_back
                self.version(fact, what, lambda: ask(self.desk, fact.psbt_id, fee_rate=str(*rate)), *rate)

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
        answer = self.ask(ask)
        if answer is None:
            return
        before = [each for each in self.facts if each.family == fact.family]
        pays = {} if what == "take back" else fact.pays
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
            for name in ("bob", "carol"):
                ok(self.desk.decline(name, fact.psbt_id))
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

    def ask(self, call: Any) -> dict | None:
        """The answer; None for a refusal, which leaves nothing."""
        before = self.locked(), self.count()
        response = call()
        if answered(response):
            assert not self.is_short, "no quorum can sign it"
            return response.json()
        assert (self.locked(), self.count()) == before, response.text
        return None

    def keep(
        self, kind: str, answer: dict, pays: dict[bytes, int | None], rate: int, family: str | None = None
    ) -> Fact:
        psbt_id, seen = answer["psbt_id"], Seen.of(answer["psbt_base64"])
        fact = Fact(psbt_id, family or psbt_id, kind, seen, pays, rate)
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
        assert len(linked) <= TOGETHER or fact.psbt_id != fact.family

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

    def check(self) -> None:
        listed = ok(self.desk.admin.get("/api/v1/psbt", workspace_id=1, limit=100))
        self.statuses = {each["psbt_id"]: each["status"] for each in listed}
        for one, two in combinations([each for each in self.facts if self.lives(each)], 2):
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
        assert shown["confirmed_sats"] + shown["unconfirmed_sats"] == sum(unspent.values())
        assert shown["locked_sats"] == sum(held.values()) == sum(unspent[each] for each in held)
        require_truth(self.desk, limit=100)
        # At the dearest no coin is worth its fee, nor is the one that stays for tokens.
        for rate in () if self.is_short else (2, 1_000):
            told = self.max_send(SHOP, rate)
            parts = [told[f"{name}_sats"] for name in ("free", "reserved", "waiting", "too_small", "kept")]
            assert min(parts) >= 0, told
            assert sum(parts) == sum(unspent.values()), told

    def lives(self, fact: Fact) -> bool:
        return self.statuses.get(fact.psbt_id, "PENDING") not in OVER

    def unspent(self) -> dict[Outpoint, int]:
        """What the chain and its mempool pay the vault, and nothing spends."""
        return {
            (each.outpoint.txid, each.outpoint.vout): each.amount
            for each in self.desk.chain.outputs_to(sorted(self.own))
            if each.spent is None
        }

    def locked(self) -> int:
        return sum(each["locked_sats"] for each in self.desk.wallets())

    def count(self) -> int:
        return len(ok(self.desk.admin.get("/api/v1/psbt", workspace_id=1, limit=100)))


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
    *[("pay", "shop", 5_000, 2)] * TOGETHER, ("most", "shop", 2),
)  # fmt: skip
END = (("bump", -1, 90), ("take back", -1, 150), ("bump", -2, 90))
SHORT = (("prove",), ("send", "shop", 5_000, 2))
# Of an exchange: several outputs to one vault, to two, to a profile, and to others.
FIRST = (
    ("vault", 200_000),
    ("vault", 120_000),
    ("other vault", 90_000),
    ("profile", 60_000),
    ("vault", 700_000),
)
