"""A platform with three signers, their devices, a 2-of-3 vault and an embedded chain."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx
from sqlalchemy import ColumnElement, select

from custody.server.chain.backend import Accepted, BlockRef
from custody.server.chain.embedded import EmbeddedChain
from custody.server.chain.embedded.mining import MINER_SCRIPT, _assemble
from custody.server.jobs.outbox import Outbox
from custody.server.network.watcher import Watcher
from custody.server.store import Store
from custody.server.store.models import CoinLockRow
from device_simulators.seed import Seed
from multisig import Network, OutPoint, Psbt, Sats, Transaction, TxOut, Vault, decode_address, encode_address
from tests.support.platform import As, World, open_world, register_key, seed
from tests.support.regtest import mine_branch, open_chain
from tests.support.wallets import Holder, foreign_script

SIGNERS = ("alice", "bob", "carol")
SHOP = encode_address(foreign_script("shop"), Network.REGTEST)
# In sat, enough for 200 outputs.
BATCH_FEE = 10_000
CAFE = encode_address(foreign_script("cafe"), Network.REGTEST)
MONTHLY = {"cycle_period": "M", "cycle_day": 1}


@dataclass
class Desk:
    """One organisation with an administrator and three signers, each with a device."""

    world: World
    chain: EmbeddedChain
    workspace_id: int
    admin: As
    signers: dict[str, As]
    user_ids: dict[str, int]
    devices: dict[str, Seed]
    vault: dict = field(default_factory=dict)

    @cached_property
    def watcher(self) -> Watcher:
        (watcher,) = self.world.platform.background.watchers()
        return watcher

    @cached_property
    def outbox(self) -> Outbox:
        return self.world.platform.background.outbox()

    @property
    def store(self) -> Store:
        return self.world.platform.services.store

    @property
    def policy(self) -> Vault:
        return Vault.from_descriptor(self.vault["descriptor"], Network.REGTEST)

    def create_vault(
        self, name: str = "Treasury", /, m: int = 2, limit: str = "10", **changes
    ) -> httpx.Response:
        signers = [self.user_ids[name] for name in SIGNERS]
        body = {"name": name, "network": "testnet", "m": m, "signers": signers, "transaction_limit": limit}
        return self.tell("create_wallet", **MONTHLY | body | changes)

    def tell(self, path: str, person: As | str | None = None, /, **body: object) -> httpx.Response:
        """The administrator, or ``person`` (also by a signer's name), changes something of the workspace."""
        who = self.signers[person] if isinstance(person, str) else person or self.admin
        return who.post(f"/api/v1/{path}", {"workspace_id": self.workspace_id} | body)

    def of_vault(self, path: str, person: As | str | None = None, /, **body: object) -> httpx.Response:
        """Something of the vault."""
        return self.tell(path, person, **{"vault_id": self.vault["id"]} | body)

    def freeze(self, **body: object) -> dict:
        return ok(self.of_vault("freeze-vault", "carol", **body))

    def unfreeze(self, *names: str) -> dict:
        """Alice and Bob, or these signers in turn: the last answer."""
        return [ok(self.of_vault("unfreeze-vault", name)) for name in names or SIGNERS[:2]][-1]

    def bind(
        self, *, only_address_book: bool = False, maker_may_approve: bool = True, **approvers: list[str]
    ) -> None:
        """Replaces the vault's controls; ``approvers`` where they are given."""
        controls = {"only_address_book": only_address_book, "maker_may_approve": maker_may_approve}
        ok(self.of_vault("update-vault-controls", **controls, **approvers))

    def enter(self, name: str, address: str) -> dict:
        """Puts an address into the book."""
        return ok(self.tell("add-whitelist-address", name=name, address=address))

    def limit(self, amount: str, **changes: object) -> dict:
        """Replaces the vault's limit: of each month, where no other cycle is named."""
        return ok(self.of_vault("update-vault", **MONTHLY | {"transaction_limit": amount} | changes))

    def limit_role(self, amount: str, **changes: object) -> dict:
        """Replaces the administrators' limit, or that of ``role_id``."""
        body = {"role_id": 1, "new_transaction_limit": amount}
        return ok(self.tell("update-role-policies", **MONTHLY | body | changes))

    def wallets(self) -> list[dict]:
        return ok(self.admin.get("/api/v1/list-wallets", workspace_id=self.workspace_id))

    def used(self) -> str:
        """Of the first vault's limit, in bitcoin."""
        return self.wallets()[0]["detailed_vault_limits"]["Used"]

    def locks(self) -> dict[OutPoint, str]:
        """The family that holds each coin."""
        return {OutPoint(lock.txid, lock.vout): lock.family_id for lock in self.rows(CoinLockRow)}

    def deposit(self, *amounts: int, blocks: int = 6, to: str | None = None) -> list[str]:
        """Pays the vault's receive address; `blocks` are mined on top."""
        addresses = {each["id"]: each["receive_address"] for each in self.wallets()}
        txids = [self.chain.fund(to or addresses[self.vault["id"]], Sats(amount)) for amount in amounts]
        if blocks:
            self.chain.mine(blocks)
        self.watcher.look()
        return txids

    def batch(self, *payments: tuple[str, int], blocks: int = 6) -> str:
        """One transaction that pays all these addresses, as an exchange's does. Returns its txid."""
        total = sum(amount for _, amount in payments) + BATCH_FEE
        source = self.chain.fund(encode_address(MINER_SCRIPT, Network.REGTEST), Sats(total))
        outputs = tuple(TxOut(Sats(amount), decode_address(to, Network.REGTEST)) for to, amount in payments)
        batched = _assemble([OutPoint(source, 0)], outputs)
        assert isinstance(self.chain.broadcast(batched), Accepted)
        if blocks:
            self.chain.mine(blocks)
        self.watcher.look()
        return batched.txid

    def take_deposit_back(self, txid: str) -> None:
        """The sender of a batched deposit spends its coin otherwise, in a longer branch without it."""
        deposit = self.chain.transaction(txid)
        depth = 0 if deposit.block is None else self.chain.tip().height - deposit.block.height + 1
        (paid,) = deposit.transaction.inputs
        rival = _assemble([paid.outpoint], (TxOut(Sats(BATCH_FEE), MINER_SCRIPT),))
        source = self.chain.transaction(paid.outpoint.txid)
        is_left_out = source.block is None or (deposit.block or source.block).height <= source.block.height
        self.reorganise(depth, depth + 1, [*([source.transaction] if is_left_out else []), rival])

    def propose(self, *amounts: int, recipients: Sequence[str] | None = None, **changes) -> httpx.Response:
        paid = [SHOP, CAFE][: len(amounts)] if recipients is None else list(recipients)
        body = {"wallet_id": self.vault["id"], "recipients": paid, "amounts_sats": list(amounts)}
        return self.tell("create-psbt", **body | {"tx_type": "send"} | changes)

    def sweep(self, to: str = SHOP, **changes) -> httpx.Response:
        return self.propose(recipients=[to], **{"amounts_sats": None, "sweep": True} | changes)

    def proposal(self, psbt_id: str, reader: str | None = None) -> dict:
        """As the administrator, who is no signer, or ``reader`` reads it."""
        person = self.admin if reader is None else self.signers[reader]
        return ok(person.get("/api/v1/psbt", psbt_id=psbt_id))

    def psbt(self, psbt_id: str) -> Psbt:
        return Psbt.parse(self.proposal(psbt_id)["psbt_base64"])

    def coins(self, psbt_id: str) -> set[OutPoint]:
        """What the proposal spends."""
        return {item.outpoint for item in self.psbt(psbt_id).inputs}

    def submit(self, name: str, psbt_id: str, psbt: Psbt | str | None = None, **changes) -> httpx.Response:
        body: dict = {"psbt_id": psbt_id}
        if psbt is not None:
            body["psbt_base64"] = psbt if isinstance(psbt, str) else psbt.to_base64()
        return self.tell("sign-psbt", name, **body | changes)

    def signed(self, name: str, psbt_id: str, **how) -> Psbt:
        """The proposal's PSBT with this signer's signatures, as the device returns it."""
        return sign(self.devices[name], self.psbt(psbt_id), **how)

    def approve(self, name: str, psbt_id: str) -> dict:
        return ok(self.submit(name, psbt_id, self.signed(name, psbt_id)))

    def decline(self, name: str, psbt_id: str, reason: str = "not mine") -> httpx.Response:
        return self.submit(name, psbt_id, decision="reject", reason=reason)

    def sign_off(self, psbt_id: str) -> None:
        """Two signers approve, which the 2-of-3 vault needs."""
        for name in SIGNERS[:2]:
            self.approve(name, psbt_id)

    def reject(self, psbt_id: str) -> None:
        """Two signers decline, so that the threshold cannot be met."""
        for name in SIGNERS[1:]:
            ok(self.decline(name, psbt_id))

    def settle(self) -> None:
        """Runs the workers once."""
        self.outbox.run_due()
        self.watcher.look()

    def mine(self, blocks: int = 1) -> tuple[BlockRef, ...]:
        """Mines blocks; the watcher reads them."""
        mined = self.chain.mine(blocks)
        self.watcher.look()
        return mined

    def reorganise(self, depth: int, length: int, transactions: Sequence[Transaction] = ()) -> None:
        mine_branch(self.chain, depth, length, transactions)
        self.watcher.look()

    def later(self, **span: float) -> None:
        """Lets time pass; everybody signs in again."""
        self.world.clock.advance(**span)
        self.admin = self.world.as_user("admin@example.org")
        self.signers = {name: self.world.as_user(f"{name}@example.org") for name in self.signers}

    def audited(self) -> list[str]:
        """The actions that the workspace's log has recorded."""
        return self.world.audit_actions(f"workspace:{self.workspace_id}")

    def rows(self, model: type, *where: ColumnElement[bool]) -> list:
        """The rows of the model that match."""
        with self.store.read() as db:
            return list(db.scalars(select(model).where(*where)))


def ok(response: httpx.Response):
    assert response.status_code == 200, response.text
    return response.json()


def refused(response: httpx.Response, status: int, code: str) -> dict:
    assert (response.status_code, response.json()["code"]) == (status, code), response.text
    return response.json()


def sign(device: Seed, psbt: Psbt, **how: Any) -> Psbt:
    """Adds the device's signatures, as ``Keys.sign``."""
    return Holder(device).sign(psbt, **how)


@contextmanager
def open_desk(folder: Path, **given: Any) -> Iterator[Desk]:
    """``given``: as to ``open_world``."""
    with open_organisation(folder, **given) as desk:
        desk.vault = ok(desk.create_vault())
        yield desk


@contextmanager
def open_organisation(
    folder: Path, registered: Sequence[str] = SIGNERS, *, broadcast_wait_seconds: float = 0, **given: Any
) -> Iterator[Desk]:
    """Without a vault, and with the keys of these members."""
    with open_world(folder, broadcast_wait_seconds=broadcast_wait_seconds, **given) as world:
        chain = open_chain(world.platform.background)
        try:
            yield desk_of(world, chain, registered=registered)
        finally:
            chain.close()


def desk_of(
    world: World,
    chain: EmbeddedChain,
    name: str = "Acme",
    host: str = "example.org",
    *,
    first: int = 1,
    registered: Sequence[str] = SIGNERS,
) -> Desk:
    """``first``: the number of the first device's seed. Only who has a key is signed in."""
    placed = world.organisation(name, f"admin@{host}")
    admin = world.as_user(f"admin@{host}")
    ids = {each: world.member(placed.workspace_id, f"{each}@{host}").user_id for each in SIGNERS}
    devices = {each: seed(number) for number, each in enumerate(SIGNERS, start=first)}
    signers = {each: world.as_user(f"{each}@{host}") for each in registered}
    for each, user in signers.items():
        ok(register_key(user, devices[each]))
    return Desk(world, chain, placed.workspace_id, admin, signers, ids, devices)


def neighbour_of(desk: Desk, name: str = "Umbrella") -> Desk:
    """Another tenant of the same platform, on the same chain, with people, devices and a vault of its own."""
    found = desk_of(desk.world, desk.chain, name, f"{name.lower()}.example", first=11)
    found.vault = ok(found.create_vault("Reserve"))
    return found
