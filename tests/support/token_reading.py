"""Tokens of a desk's vault, for tests of the reading calls: created, called, approved and mined through
the API.
"""

from dataclasses import dataclass
from functools import cached_property

from custody.server.service.tokens.indexer import Indexer
from multisig import Network, decode_address, encode_address
from multisig.tokens import Bytecode
from tests.multisig.tokens.samples import bytecode
from tests.support import token_desk
from tests.support.custody import Desk, ok


@dataclass
class Minted:
    """A requested token."""

    uid: int
    psbt_id: str
    txid: str
    code: Bytecode


@dataclass
class TokenReadingDesk:
    """A desk whose vault calls tokens from its first address."""

    desk: Desk

    @cached_property
    def asking(self) -> token_desk.TokenDesk:
        return token_desk.TokenDesk(self.desk)

    @cached_property
    def indexer(self) -> Indexer:
        (indexer,) = self.desk.world.platform.background.indexers()
        return indexer

    @property
    def script(self) -> bytes:
        return decode_address(self.desk.vault["address"], Network.REGTEST)

    @property
    def store(self):
        return self.desk.world.platform.services.store

    def create(self, ticker: str = "GOLD") -> Minted:
        """Requests a token, without signing."""
        self.asking.fund()
        code = bytecode(owner_script=self.script, ticker=ticker)
        supplies = {"total_supply": str(code.total_supply), "max_supply": str(code.max_supply)}
        made = ok(self.asking.create(ticker=ticker, **supplies))
        txid = self.desk.proposal(made["psbt_id"])["txid_expected"]
        return Minted(made["contract_uid"], made["psbt_id"], txid, code)

    def call(self, token: Minted, function: str, amount: int | None = None, to: bytes | None = None):
        """The call's uid and its proposal."""
        self.asking.fund()
        address = None if to is None else encode_address(to, Network.REGTEST)
        args = [arg for arg in (address, amount) if arg is not None]
        made = ok(self.asking.call(token.uid, function, *args))
        return made["call_uid"], made["psbt_id"]

    def approve(self, psbt_id: str) -> None:
        self.desk.sign_off(psbt_id)

    def look(self) -> None:
        """Runs the workers once."""
        self.desk.settle()
        self.indexer.look()
        self.desk.watcher.look()

    def mine(self, blocks: int = 1) -> None:
        self.desk.chain.mine(blocks)
        self.look()

    def carry_out(self, psbt_id: str) -> None:
        """Approved, broadcast and mined."""
        self.approve(psbt_id)
        self.look()
        self.mine()

    def started(self, ticker: str = "GOLD") -> Minted:
        token = self.create(ticker)
        self.carry_out(token.psbt_id)
        self.carry_out(self.call(token, "init")[1])
        return token

    def read(self, path: str, **query):
        return ok(self.desk.admin.get(f"/api/v1/{path}", workspace_id=self.desk.workspace_id, **query))

    def contract(self, token: Minted) -> dict:
        return self.read("contract", contract_uid=token.uid)

    def calls(self, token: Minted) -> list[dict]:
        return self.read("contract-calls", contract_uid=token.uid)

    def balances(self) -> list[dict]:
        return self.read("get-tokens", vault_id=self.desk.vault["id"])
