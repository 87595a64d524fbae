"""Random lives of payments and their versions on a real chain: after every step the record says what the
chain shows.

This is no model of the lifecycle, only invariants: a proposal is confirmed if and only if its transaction is
in a block; at most one of a family is; coins are locked and counted for exactly what may still be mined; in
the end all is settled.
"""

from dataclasses import dataclass, field
from itertools import count

import httpx
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from custody.server.proposals.lifecycle import holds_coins
from custody.server.store.models import CoinLockRow, ProposalInputRow, ProposalRow
from multisig import Psbt, Transaction, finalise
from tests.support.custody import SHOP, SIGNERS, Desk, open_desk, sign
from tests.support.examples import examples
from tests.support.regtest import mine_branch
from tests.support.replacing import bump, cancel, forget_mempool, take_back

ASK = {"bump": bump, "take back": take_back}
WHICH, RATE = st.integers(0, 9), st.sampled_from(["3", "6", "20"])
STEPS = st.one_of(
    st.tuples(st.just("pay"), st.sampled_from([20_000, 90_000, 180_000])),
    st.tuples(st.just("bump"), WHICH, RATE),
    st.tuples(st.just("take back"), WHICH, RATE),
    st.tuples(st.just("cancel"), WHICH, st.booleans()),
    st.tuples(st.just("sign"), WHICH),
    st.tuples(st.just("sign off"), WHICH),
    st.tuples(st.just("sign off"), WHICH),
    st.tuples(st.just("decline"), WHICH),
    st.tuples(st.just("finish elsewhere"), WHICH),
    st.tuples(st.just("mine"), st.integers(1, 2)),
    st.tuples(st.just("mine at random"), WHICH),
    st.tuples(st.just("reorganise"), st.integers(1, 4)),
    st.tuples(st.just("deposit")),
    st.tuples(st.just("lose a deposit"), WHICH),
    st.tuples(st.just("forget")),
    st.tuples(st.just("freeze")),
    st.tuples(st.just("unfreeze")),
    st.tuples(st.just("bind"), st.booleans()),
)


@dataclass
class Life:
    desk: Desk
    made: list[str] = field(default_factory=list)
    is_frozen: bool = False
    is_bound: bool = False
    deposits: list[str] = field(default_factory=list)

    def take(self, step: tuple) -> None:
        match step:
            case ("pay", amount):
                paid = self.desk.propose(amount, recipients=[SHOP], fee_rate="2")
                self.keep(paid)
                assert not (self.is_frozen or self.is_bound) or paid.status_code != 200, (
                    "the shop is not listed"
                )
            case ("freeze",):
                self.of_vault("alice", "freeze-vault")
                self.is_frozen = True
            case ("unfreeze",):
                self.unfreeze()
            case ("bind", is_bound):
                self.is_bound = is_bound
                self.of_vault(
                    None, "update-vault-controls", only_address_book=is_bound, maker_may_approve=True
                )
            case (what, which, *more) if self.made:
                self.of_one(what, self.made[which % len(self.made)], *more)
            case _:
                self.on_the_chain(step)
        waiting = self.in_mempool()
        self.desk.settle()
        assert not self.is_frozen or self.in_mempool() <= waiting, "the platform sent what it had to keep"

    def in_mempool(self) -> set[str]:
        return set(self.desk.chain._mempool._entries)

    def of_vault(self, name: str | None, path: str, **body: object) -> bool:
        person = self.desk.admin if name is None else self.desk.signers[name]
        place = {"workspace_id": self.desk.workspace_id, "vault_id": self.desk.vault["id"]}
        return answered(person.post(f"/api/v1/{path}", place | body))

    def unfreeze(self) -> None:
        for name in SIGNERS[1:]:
            self.of_vault(name, "unfreeze-vault")
        self.is_frozen = False

    def of_one(self, what: str, psbt_id: str, *more: object) -> None:
        match what:
            case "bump" | "take back":
                self.keep(ASK[what](self.desk, psbt_id, fee_rate=more[0]))
            case "cancel":
                answered(cancel(self.desk, psbt_id, release_coins=more[0]))
            case "sign" | "sign off":
                self.sign(psbt_id, SIGNERS[: 1 if what == "sign" else 2])
            case "decline":
                for name in SIGNERS[1:]:
                    answered(self.desk.decline(name, psbt_id))
            case "finish elsewhere":
                self.desk.chain.broadcast(self.transaction(psbt_id))
            case "mine at random":
                self.mine(self.transaction(psbt_id))

    def on_the_chain(self, step: tuple) -> None:
        match step:
            case ("mine", blocks):
                self.desk.chain.mine(blocks)
            case ("reorganise", depth):
                mine_branch(self.desk.chain, depth, depth + 1)
            case ("deposit",):
                self.deposits.append(self.desk.batch((self.desk.vault["receive_address"], 60_000), blocks=1))
            case ("lose a deposit", which):
                self.lose(which)
            case ("forget",):
                forget_mempool(self.desk)

    def lose(self, which: int) -> None:
        """Its sender takes a deposit back, where it is there."""
        txid = self.deposits[which % len(self.deposits)] if self.deposits else ""
        if txid and self.desk.chain.transaction(txid) is not None:
            self.desk.take_deposit_back(txid)

    def keep(self, response: httpx.Response) -> None:
        if answered(response):
            self.made.append(response.json()["psbt_id"])

    def sign(self, psbt_id: str, names: tuple[str, ...]) -> None:
        for name in names:
            answered(self.desk.submit(name, psbt_id, self.desk.signed(name, psbt_id)))

    def transaction(self, psbt_id: str) -> Transaction:
        psbt = Psbt.parse(self.desk.proposal(psbt_id)["psbt_base64"]).without_signatures()
        for name in SIGNERS[:2]:
            psbt = sign(self.desk.devices[name], psbt)
        return finalise(psbt, self.desk.policy)

    def mine(self, transaction: Transaction) -> None:
        """A miner takes what is not in our mempool, where its coins are there."""
        inputs = [item.outpoint for item in transaction.inputs]
        made = [self.desk.chain.transaction(each.txid) for each in inputs]
        spent = [self.desk.chain.spender(each) for each in inputs]
        if all(each is not None and each.block is not None for each in made) and not any(
            each is not None and each.height is not None for each in spent
        ):
            mine_branch(self.desk.chain, 0, 1, [transaction])

    def check(self) -> None:
        rows, places = self.desk.rows(ProposalRow), self.desk.rows(ProposalInputRow)
        locks = {(lock.txid, lock.vout) for lock in self.desk.rows(CoinLockRow)}
        for row in rows:
            self.check_record(row)
        families = {row.family_id: [each for each in rows if each.family_id == row.family_id] for row in rows}
        for members in families.values():
            assert sum(row.status == "CONFIRMED" for row in members) <= 1
        held = {row.id for row in rows if holds_coins(row)}
        assert locks == {(place.txid, place.vout) for place in places if place.proposal_id in held}
        largest = (
            max((row.movement_sats for row in each if row.id in held), default=0)
            for each in families.values()
        )
        shown = self.desk.wallets()[0]["detailed_vault_limits"]["Used"]
        assert shown == f"0.{sum(largest):08d}"

    def check_record(self, row: ProposalRow) -> None:
        seen = self.desk.chain.transaction(row.txid_expected)
        if seen is None:
            assert row.status != "CONFIRMED"
        elif seen.block is None:
            assert row.status == "BROADCASTING"
        else:
            assert row.status == "CONFIRMED"
            assert (row.block_height, row.block_hash) == (seen.block.height, seen.block.hash)

    def end(self) -> None:
        """Whatever was signed is mined, or can never be."""
        self.unfreeze()
        for psbt_id in self.made:
            if self.desk.proposal(psbt_id)["status"] == "PENDING":
                self.of_one("decline", psbt_id)
            answered(cancel(self.desk, psbt_id, release_coins=True))
        for _ in range(4):
            self.desk.world.clock.advance(seconds=61)
            self.desk.settle()
            self.desk.mine()
        left = {row.status for row in self.desk.rows(ProposalRow)}
        assert not left & {"SIGNED", "STALLED", "BROADCASTING", "REPLACED"}


def answered(response: httpx.Response) -> bool:
    """Refusals in words are as good as consent; a failure is not."""
    assert response.status_code in {200, 403, 409, 422}, response.text
    return response.status_code == 200


@pytest.mark.slow("whole lives under a lying chain")
@pytest.mark.filterwarnings("error")
def test_the_record_says_what_the_chain_shows(tmp_path_factory):
    numbers = count()

    @settings(max_examples=examples(6), suppress_health_check=list(HealthCheck))
    @given(st.lists(STEPS, min_size=8, max_size=24))
    def live(steps: list[tuple]) -> None:
        folder = tmp_path_factory.mktemp(f"life{next(numbers)}")
        with open_desk(folder / "state") as desk:
            to = desk.vault["receive_address"]
            desk.batch((to, 100_000), (SHOP, 5_000), (to, 200_000))
            life = Life(desk)
            for step in steps:
                note(str(step))
                life.take(step)
                life.check()
            life.end()

    live()
