"""Tokens at a desk: created, started and called by its vault, and indexed from the chain."""

from dataclasses import dataclass, replace

import httpx
from sqlalchemy import select

from custody.schemas.proposals import TxType
from custody.server.store import Store
from custody.server.store.models import ProposalRow, TokenBlockRow, TokenCellRow
from custody.server.tokens.indexer import token_block
from custody.server.tokens.state import published_bytecode
from multisig import Network, encode_address
from multisig.errors import InvalidToken
from multisig.tokens import Deploy, decode_payload
from multisig.tokens.machine import GENESIS_STATE, Cell, TokenCells, judge_block
from multisig.tokens.payload import MAGIC
from tests.support.custody import Desk, ok
from tests.support.platform import As
from tests.support.regtest import mine_branch
from tests.support.wallets import foreign_script

Cells = dict[tuple[str, Cell, bytes], int | bytes]
BOB_SCRIPT, EVE_SCRIPT = foreign_script("bob"), foreign_script("eve")
BOB, EVE = (encode_address(script, Network.REGTEST) for script in (BOB_SCRIPT, EVE_SCRIPT))


def is_deployment(data: bytes | None) -> bool:
    try:
        return isinstance(decode_payload(data or b""), Deploy)
    except InvalidToken:
        return False


def stored_tokens(store: Store) -> tuple[Cells, list[bytes]]:
    """The index: every cell, and the state after each block."""
    with store.read() as db:
        cells = {
            (row.contract_id, Cell(row.cell), row.holder): row.data if row.number is None else row.number
            for row in db.scalars(select(TokenCellRow))
        }
        return cells, list(db.scalars(select(TokenBlockRow.state).order_by(TokenBlockRow.height)))


@dataclass
class TokenDesk:
    """A desk whose vault has coins at its address, and token calls of it."""

    desk: Desk

    @property
    def address(self) -> str:
        return self.desk.vault["address"]

    def fund(self, *amounts: int) -> None:
        self.desk.deposit(*(amounts or (100_000,)), to=self.address)
        self.look()

    def look(self) -> None:
        """Runs the watcher again at the end, which confirms what the index has read."""
        self.desk.watcher.look()
        for indexer in self.desk.world.platform.background.indexers():
            indexer.look()
        self.desk.watcher.look()

    def create(self, user: As | None = None, **changes) -> httpx.Response:
        body = {"vault_id": self.desk.vault["id"], "network": "testnet", "whitelist_enabled": False}
        body |= {"token_name": "Gold of the House", "ticker": "GOLD", "icon": "https://example.com/gold.png"}
        body |= {"decimals_num": 2, "total_supply": "900", "max_supply": "1000"}
        return self.desk.tell("create-token", user, **body | changes)

    def call(
        self, contract_uid: int, function: str, *args: str | int, user: As | None = None, **changes
    ) -> httpx.Response:
        typed = [{"type": "str" if isinstance(arg, str) else "int", "value": arg} for arg in args]
        body = {"contract_uid": contract_uid, "wallet_id": self.desk.vault["id"]}
        body |= {"function_name": function, "args": typed}
        return self.desk.tell("call-contract", user, **body | changes)

    def finish(self, psbt_id: str, *, blocks: int = 1) -> dict:
        """Two signers approve, the workers broadcast it, blocks are mined and read."""
        self.desk.sign_off(psbt_id)
        self.desk.settle()
        if blocks:
            self.mine(blocks)
        return self.desk.proposal(psbt_id)

    def mine(self, blocks: int = 1) -> None:
        self.desk.chain.mine(blocks)
        self.look()

    def reorganise(self, depth: int, length: int) -> None:
        mine_branch(self.desk.chain, depth, length)
        self.look()

    def deployed(self, **changes) -> int:
        """A token with a confirmed deployment."""
        made = ok(self.create(**changes))
        assert self.finish(made["psbt_id"])["status"] == "CONFIRMED"
        return made["contract_uid"]

    def started(self, **changes) -> int:
        uid = self.deployed(**changes)
        self.done(uid, "init")
        return uid

    def done(self, contract_uid: int, function: str, *args: str | int) -> dict:
        """A mined call."""
        return self.finish(ok(self.call(contract_uid, function, *args))["psbt_id"])

    def cells(self) -> Cells:
        return stored_tokens(self.desk.store)[0]

    def balance(self, script: bytes) -> int:
        """The script's balance of the only token."""
        held = {holder: value for (_, cell, holder), value in self.cells().items() if cell is Cell.BALANCE}
        return held.get(script, 0)

    def check(self) -> None:
        """Checks the index against a replay of the whole chain, for the tokens that were proposed here."""
        state, before, hashes = TokenCells(), GENESIS_STATE, []
        store = self.desk.store
        with store.read() as db:
            bytecode_of = published_bytecode(db, "regtest")
            deployed = ProposalRow.tx_type == TxType.DEPLOY.value
            ours = set(db.scalars(select(ProposalRow.txid_expected).where(deployed)))
            for height in range(self.desk.chain.tip().height + 1):
                block = token_block(self.desk.chain.data_at(height, MAGIC))
                counted = tuple(
                    each for each in block.transactions if each.txid in ours or not is_deployment(each.data)
                )
                done = judge_block(replace(block, transactions=counted), state, bytecode_of, before)
                state.apply(done.effects)
                before = done.state
                hashes.append(before)
        assert stored_tokens(store) == (state.cells, hashes)
