"""A platform with a vault, its signers and enough coins, on either database, with durable commits."""

import logging
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
from sqlalchemy import insert, text

from custody.server.chain.backend import BlockRef
from custody.server.network.backends import Quote
from custody.server.requests.rates import Rates
from custody.server.rules.fees import TARGET_BLOCKS
from custody.server.store import sqlite_url
from custody.server.store.models import ChainCoinRow, ProposalInputRow, ProposalRow, VaultRow
from multisig import CHANGE, FeeRate
from tests.support.custody import Desk, ok, open_desk
from tests.support.flood import flood
from tests.support.platform import key_offer, register_key
from tests.support.postgresql import find_programs, running_server

# Durability, as in production.
DURABLE = {"fsync": "on", "full_page_writes": "on", "autovacuum": "on", "shared_buffers": "256MB"}
SECONDS = float(os.environ.get("BENCH_SECONDS", "5"))
UNLIMITED = 1_000_000_000


@contextmanager
def databases() -> Iterator[dict[str, str]]:
    """A fresh database of each kind that ``BENCH_DATABASES`` names: its URL by name.
    PostgreSQL where it is installed.
    """
    wanted = os.environ.get("BENCH_DATABASES", "SQLite,PostgreSQL").split(",")
    with tempfile.TemporaryDirectory(prefix="bench") as folder, ExitStack() as stack:
        urls = {}
        if "SQLite" in wanted:
            urls["SQLite"] = sqlite_url(Path(folder) / "custody.db")
        programs = find_programs()
        if "PostgreSQL" in wanted and programs is not None:
            server = stack.enter_context(running_server(programs, **DURABLE))
            urls["PostgreSQL"] = stack.enter_context(server.database())
        yield urls


@contextmanager
def staged(url: str) -> Iterator[Desk]:
    """A desk without rate limits."""
    quiet()
    with (
        tempfile.TemporaryDirectory(prefix="bench") as folder,
        open_desk(Path(folder) / "state", database_url=url) as desk,
    ):
        lift_limits(desk)
        desk.chain.mine(10)
        desk.watcher.look()
        yield desk


def quiet() -> None:
    """Keeps the log out of the measurement."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))


def lift_limits(desk: Desk) -> None:
    rates: Rates = desk.world.platform.services.rates
    vars(rates).update(vars(Rates(desk.world.clock, calls=UNLIMITED, writes=UNLIMITED)))


def vaults(desk: Desk, count: int) -> list[dict[str, Any]]:
    """``count`` vaults of the same signers, each with accounts of its own; the first is the desk's."""
    for name, device in desk.devices.items():
        offered = key_offer(device, accounts=count)["vault_accounts"]
        ok(register_key(desk.signers[name], device, vault_accounts=offered))
    return [desk.vault, *(ok(desk.create_vault(f"Vault {number}")) for number in range(2, count + 1))]


def fill(desk: Desk, count: int, amount: int = 100_000, vault_id: str | None = None) -> None:
    """``count`` coins, each of a transaction of its own."""
    with desk.world.platform.services.store.write() as db:
        vault = db.get_one(VaultRow, vault_id or desk.vault["id"])
        flood(db, vault, [amount] * count, outputs=1, salt=f"fill {vault.id}")
    analyse(desk)


def moving_on(desk: Desk, vault_ids: Sequence[str]) -> None:
    """Marks change addresses far ahead as used, as in a vault whose proposals are sent: each proposal takes
    the next change address and has it watched.

    Where all proposals are pending they share an address from the twentieth on, without two of the writes.
    """
    with desk.world.platform.services.store.write() as db:
        first = db.query(ChainCoinRow).first()
        assert first is not None
        values = {column.name: getattr(first, column.name) for column in ChainCoinRow.__table__.columns}
        gone = {"branch": CHANGE, "address_index": 2**31, "spent_by": "dd" * 32, "spent_height": 1}
        rows = [values | gone | {"txid": each * 2, "vault_id": each} for each in vault_ids]
        db.execute(insert(ChainCoinRow), rows)


def analyse(desk: Desk) -> None:
    """Updates the statistics, as autovacuum would a minute later."""
    with desk.world.platform.services.store.write() as db:
        if db.get_bind().dialect.name == "postgresql":
            db.execute(text("ANALYZE"))


def multiply(desk: Desk, count: int, **changes: object) -> None:
    """``count`` copies of the first proposal."""
    store = desk.world.platform.services.store
    with store.write() as db:
        first = db.query(ProposalRow).first()
        assert first is not None
        values = {column.name: getattr(first, column.name) for column in ProposalRow.__table__.columns}
        place = {"input_index": 0, "vout": 0, "amount_sats": 1, "branch": 0, "address_index": 0}
        for start in range(0, count, 1_000):
            ids = [os.urandom(16).hex() for _ in range(min(1_000, count - start))]
            rows = [values | {"id": i, "family_id": i, "txid_expected": i * 2} | changes for i in ids]
            db.execute(insert(ProposalRow), rows)
            db.execute(insert(ProposalInputRow), [place | {"proposal_id": i, "txid": i * 2} for i in ids])
    analyse(desk)


@dataclass(frozen=True)
class Still:
    """A fixed tip and fee rates, for processes that do not follow the chain."""

    height: int = 120

    def refresh(self, _chain: str) -> Quote:
        rates = dict.fromkeys(TARGET_BLOCKS, FeeRate(1_000))
        return Quote(BlockRef(self.height, "00" * 32, 0), rates, FeeRate(1_000))

    quote = refresh
