"""Random lives of one token, forks included: what is let through is what the machine lets through, and the
index says what a replay says.
"""

from collections.abc import Callable
from operator import itemgetter
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from custody.server.tokens.indexer import token_block
from multisig import RECEIVE, Network, decode_address
from multisig.tokens import Function, TokenAmount, TokenCall, encode_payload, parse_bytecode
from multisig.tokens.machine import GENESIS_STATE, TokenCells, TokenTransaction, judge_block, simulate
from multisig.tokens.payload import MAGIC
from tests.custody.server.tokens.test_creating import contract
from tests.support.custody import ok, open_desk
from tests.support.examples import examples
from tests.support.token_desk import BOB, EVE, TokenDesk

WAITING = {"PENDING", "SIGNED", "BROADCASTING", "STALLED"}
AMOUNTS = (1, 40, 100, 500, 901)
STEPS = 14


class Life:
    def __init__(self, tokens: TokenDesk, chance: Random) -> None:
        self.tokens, self.desk, self.chance = tokens, tokens.desk, chance
        # One transaction: each output is a coin of its own.
        self.desk.batch(*[(tokens.address, 20_000)] * 12)
        tokens.look()
        self.uid = tokens.deployed()
        self.bytecode = parse_bytecode(contract(tokens).bytecode)

    def run(self) -> None:
        steps: tuple[Callable[[], None], ...] = (
            self.ask,
            self.ask,
            self.ask,
            self.sign,
            self.sign,
            self.decline,
            self.mine,
            self.mine,
            self.fork,
        )
        self.tokens.done(self.uid, "init")
        for _ in range(STEPS):
            self.chance.choice(steps)()
            self.tokens.check()

    def ask(self) -> None:
        """Refused where the machine gives it no effect behind what waits, and let through where it does."""
        function = self.chance.choice([each for each in Function if each is not Function.TRANSFER_OWNERSHIP])
        address = self.chance.choice((BOB, EVE, self.tokens.address)) if function.takes_address else None
        amount = self.chance.choice(AMOUNTS) if function.takes_amount else None
        expected = self.failure(function, address, amount)
        answer = self.tokens.call(
            self.uid, function.wire_name, *(arg for arg in (address, amount) if arg is not None)
        )
        code, errors = answer.json().get("code"), answer.json().get("errors")
        if code == "LOCKED_FUNDS" and not errors:
            # Every coin at the address waits; which is asked after the rules.
            assert expected is None
        elif code != "DEPLOYMENT_NOT_CONFIRMED":
            # Of a deployment whose block a reorganisation took, the rules are not asked.
            assert (None if answer.status_code == 200 else errors[0]["code"]) == expected, answer.text

    def failure(self, function: Function, address: str | None, amount: int | None) -> str | None:
        state, seen, contract_id = TokenCells(), set(), ""
        for height in range(self.desk.chain.tip().height + 1):
            block = token_block(self.desk.chain.data_at(height, MAGIC))
            done = judge_block(block, state, lambda _: self.bytecode, GENESIS_STATE)
            state.apply(done.effects)
            seen |= {outcome.txid for outcome in done.outcomes}
            contract_id = contract_id or next((outcome.txid for outcome in done.outcomes), "")
        own = self.desk.policy.script_pubkey(RECEIVE, 0)
        before = [
            TokenTransaction(each["txid_expected"], own, bytes.fromhex(each["op_return"][2:]))
            for each in self.proposals()
            if each["txid_expected"] not in seen
        ]
        script = None if address is None else decode_address(address, Network.REGTEST)
        value = None if amount is None else TokenAmount(amount)
        if not contract_id:
            return None
        call = TokenCall(contract_id=contract_id, function=function, amount=value, address=script)
        mine = TokenTransaction("", own, encode_payload(call))
        height = self.desk.chain.tip().height + 1
        failure = simulate([*before, mine], height, state, lambda _: self.bytecode)[-1].failure
        return None if failure is None else failure.value

    def proposals(self) -> list[dict]:
        """In the order of their making, which the list does not tell: several are made at one moment here."""
        found = ok(self.desk.admin.get("/api/v1/psbt", workspace_id=1, limit=100))
        calls = [each for each in found if each["tx_type"] == "call" and each["status"] in WAITING]
        return sorted(calls, key=itemgetter("call_uid"))

    def sign(self) -> None:
        for each in self.some_pending():
            self.tokens.finish(each["psbt_id"], blocks=0)

    def decline(self) -> None:
        for each in self.some_pending():
            self.desk.reject(each["psbt_id"])

    def some_pending(self) -> list[dict]:
        pending = [each for each in self.proposals() if each["status"] == "PENDING"]
        return self.chance.sample(pending, min(1, len(pending)))

    def mine(self) -> None:
        self.tokens.mine()

    def fork(self) -> None:
        depth = self.chance.randrange(1, 3)
        self.tokens.reorganise(depth, depth + 1)


@pytest.mark.slow("whole lives of tokens; test_calling.py has one")
@given(seed=st.integers(0, 10_000))
@settings(max_examples=examples(4), suppress_health_check=list(HealthCheck))
def test_lives_of_a_token(seed: int) -> None:
    with TemporaryDirectory() as folder, open_desk(Path(folder)) as desk:
        Life(TokenDesk(desk), Random(seed)).run()
