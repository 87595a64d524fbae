"""A workspace as large as they get, written in bulk: proposals in mixed states,
an address book, vaults, one of them with many movements and one with many unspent coins, an audit log,
deliveries, calls.
"""

import random
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from itertools import islice
from typing import Any

from sqlalchemy import func, insert, select, update
from sqlalchemy.orm import Session

from custody.common.text import name_key
from custody.schemas.common import format_time
from custody.schemas.webhooks import MAX_WEBHOOKS
from custody.server.console.application import ROOT, ROWS
from custody.server.rules.audit import AuditRow, Category, chain_of, event_hash
from custody.server.store.models import (
    AddressBookEntryRow,
    AuditEventRow,
    AuditHeadRow,
    Base,
    ChainCoinRow,
    ContractCallRow,
    DecisionRow,
    KeyAccountRow,
    MovementRow,
    ProposalInputRow,
    ProposalRow,
    SignatureRow,
    VaultRow,
    VaultSignerRow,
    WatchedScriptRow,
    WebhookDeliveryRow,
    WebhookEventRow,
    WebhookRow,
    table_of,
)
from custody.server.vaults.stored import policy_of
from multisig import Network, encode_address
from multisig import Vault as Policy
from multisig.script import p2wsh
from tests.support.custody import SIGNERS, Desk, ok
from tests.support.flood import flood
from tests.support.platform import START
from tests.support.rows import lock_coins
from tests.support.token_desk import BOB, TokenDesk
from tests.support.wallets import Holder

NETWORK = Network.REGTEST
# Of twenty proposals.
STATES = ("PENDING",) * 2 + ("BROADCASTING", "EXPIRED", "REJECTED", "CANCELLED") + ("CONFIRMED",) * 14
FIRMS = ("Acme", "Globex", "Initech", "Umbrella", "Hooli", "Stark", "Wayne", "Tyrell")
BATCH = 2_000
_PARAMETER = re.compile(r"{(\w+)(?::int)?}")


@dataclass(frozen=True)
class Size:
    proposals: int
    entries: int
    vaults: int
    coins: int
    movements: int
    audit: int
    deliveries: int
    calls: int


@dataclass
class Crowd:
    """A desk with long lists. ``ids``: one record of each kind, for the paths of pages."""

    desk: Desk
    ids: dict[str, Any]
    there: Size = Size(0, 0, 1, 0, 0, 0, 0, 0)

    @classmethod
    def of(cls, desk: Desk) -> "Crowd":
        """One record of each kind, made through the API."""
        tokens = TokenDesk(desk)
        tokens.fund(*[300_000] * 6)
        uid = tokens.started()
        called = ok(tokens.call(uid, "transfer", BOB, 100))
        paid = ok(desk.propose(50_000, description="Rent"))["psbt_id"]
        tokens.finish(paid, blocks=2)
        waits = ok(desk.propose(50_000, description="Invoice"))["psbt_id"]
        urls = (f"https://hooks.example.org/{number}" for number in range(MAX_WEBHOOKS))
        hooks = [ok(desk.tell("create-webhook", url=url, kinds=["*"])) for url in urls]
        program = {"name": "Payroll", "rights": ["VIEW_LOGS"], "networks": ["192.0.2.1"]}
        made = ok(desk.tell("create-service-account", **program, expires_at="2026-06-30T00:00:00Z"))
        ids = {"paid": paid, "psbt_id": waits, "called": called["psbt_id"], "function": "transfer"}
        ids |= {"workspace_id": desk.workspace_id, "vault_id": desk.vault["id"], "contract_uid": uid}
        ids |= {"webhook_id": hooks[0]["webhook_id"], "service_account_id": made["service_account_id"]}
        ids |= {"key_id": desk.wallets()[0]["signers"][0]["key_id"], "user_uuid": desk.user_ids["alice"]}
        return cls(desk, ids | {"uid": 1, "role_id": 1})

    def grow(self, to: Size) -> None:
        """Grows every list, those with foreign keys last."""
        with self.desk.store.write() as db:
            first = db.get_one(VaultRow, self.desk.vault["id"])
            addresses = self._book(db, to.entries)
            vaults = self._vaults(db, first, to.vaults)
            self.ids["many_movements"] = vaults[1]
            self._coins(db, first, to.coins)
            self._proposals(db, to.proposals, vaults, addresses)
            self._movements(db, db.get_one(VaultRow, vaults[1]), to.movements)
            self._audit(db, to.audit)
            self._deliveries(db, to.deliveries)
            self._calls(db, to.calls)
        self.there = to

    def pages(self, *further: str) -> dict[str, str]:
        """A page of each row that there is a record for, by its path in the console's table."""
        paths = [row.path for row in ROWS if row.method == "GET" and not row.is_open]
        return {
            path: ROOT + _PARAMETER.sub(lambda found: str(self.ids[found[1]]), path)
            for path in (*paths, *further)
            if all(name in self.ids for name in _PARAMETER.findall(path))
        }

    def _book(self, db: Session, count: int) -> list[str]:
        def entry(number: int) -> dict[str, Any]:
            name = f"{FIRMS[number % len(FIRMS)]} {number}"
            values = {"name": name, "name_key": name_key(name), "address": _address(number)}
            return {"workspace_id": self.desk.workspace_id, "created_by": 1, "created_at": START, **values}

        _insert(db, AddressBookEntryRow, map(entry, range(self.there.entries, count)))
        self.ids["uid"] = db.scalar(select(func.max(AddressBookEntryRow.id)))
        return [_address(number) for number in range(count)]

    def _vaults(self, db: Session, first: VaultRow, count: int) -> list[str]:
        """Each of its own accounts, so that the descriptors are real and differ."""
        seats = db.scalars(select(VaultSignerRow).where(VaultSignerRow.vault_id == first.id)).all()
        kinds = (VaultRow, KeyAccountRow, VaultSignerRow, WatchedScriptRow)
        made: dict[type[Base], list[dict[str, Any]]] = {kind: [] for kind in kinds}
        last = db.scalar(select(func.max(KeyAccountRow.id))) or 0
        for number in range(self.there.vaults, count):
            vault_id, keys = _id("vault", number), []
            for seat, name in zip(seats, SIGNERS, strict=True):
                key = Holder(self.desk.devices[name]).vault_key(NETWORK, 1_000 + number)
                keys.append(key)
                last += 1
                account = {"id": last, "key_id": seat.key_id, "account": 1_000 + number, "vault_id": vault_id}
                where = {"derivation_path": str(key.origin.path), "xpub": str(key.xpub)}
                made[KeyAccountRow].append({**account, **where})
                made[VaultSignerRow].append({**_values(seat), "vault_id": vault_id, "key_account_id": last})
            policy = Policy(NETWORK, first.m, tuple(keys))
            changes = {"id": vault_id, "name": f"Vault {number}", "descriptor": policy.descriptor}
            address = {"address": policy.address(0, 0), "witness_script_hex": "00"}
            moment: dict[str, Any] = {"created_at": first.created_at + timedelta(seconds=number)}
            moment["next_receive_index"] = 0
            made[VaultRow].append({**_values(first), **changes, **address, **moment})
            place = {"vault_id": vault_id, "branch": 0, "address_index": 0}
            script = {"chain": first.chain, "script_pubkey": policy.script_pubkey(0, 0)}
            made[WatchedScriptRow].append({**place, **script})
        for model, rows in made.items():
            _insert(db, model, rows)
        return [first.id, *(_id("vault", number) for number in range(1, count))]

    def _coins(self, db: Session, vault: VaultRow, count: int) -> None:
        """A tenth of them is locked by proposals."""
        amounts = [5_000 + number % 50_000 for number in range(self.there.coins, count)]
        outpoints = flood(db, vault, amounts, salt=count)
        lock_coins(db, vault.chain, outpoints[: len(amounts) // 10], _id("holder", count))

    def _proposals(self, db: Session, count: int, vaults: list[str], addresses: list[str]) -> None:
        likes = {kind: _values(db.get_one(ProposalRow, self.ids[kind])) for kind in ("paid", "psbt_id")}
        draw = random.Random(count)
        began = START - timedelta(days=365)

        def proposal(number: int) -> dict[str, Any]:
            status, own = STATES[number % len(STATES)], _id("proposal", number)
            like = likes["paid" if status == "CONFIRMED" else "psbt_id"]
            at = began + timedelta(seconds=number * 310)
            what = {"description": f"Invoice {number} of {draw.choice(FIRMS)}", "status": status}
            ids = {"id": own, "family_id": own, "txid_expected": own[::-1] * 2}
            paid = {"recipients": [addresses[number % len(addresses)]], "amounts_sats": [10_000 + number]}
            where = {"vault_id": vaults[number % len(vaults) if number % 2 else 0], "movement_sats": 1_000}
            txid = {"txid": None if like["txid"] is None else ids["txid_expected"]}
            when = {"created_at": at, "updated_at": at}
            return {**like, **what, **ids, **paid, **where, **txid, **when}

        _insert(db, ProposalRow, map(proposal, range(self.there.proposals, count)))
        self.ids["middle"] = _id("proposal", count // 2)
        for status in set(STATES):
            self._parts(db, self.ids["paid" if status == "CONFIRMED" else "psbt_id"], status)

    def _parts(self, db: Session, like: str, status: str) -> None:
        """Inputs, decisions and signatures of the proposals without any."""
        has_parts = select(ProposalInputRow.proposal_id)
        new = select(ProposalRow.id).where(ProposalRow.status == status, ProposalRow.id.not_in(has_parts))
        ids = db.scalars(new).all()
        for model in (ProposalInputRow, DecisionRow, SignatureRow):
            parts = [_values(one) for one in db.scalars(select(model).where(model.proposal_id == like))]
            copies = [{**part, "proposal_id": each} for each in ids for part in parts]
            for each in copies if model is ProposalInputRow else ():
                each["txid"] = each["proposal_id"] * 2
            _insert(db, model, copies)

    def _movements(self, db: Session, vault: VaultRow, count: int) -> None:
        """A coin is received in every second block, and spent in the next one."""
        script, amount, start = policy_of(vault).script_pubkey(0, 0), 70_000, self.there.movements

        def movement(number: int) -> dict[str, Any]:
            is_in = number % 2 == 0
            came = {"kind": "deposit" if is_in else "payment", "received_sats": amount if is_in else 0}
            went = {"sent_sats": 0 if is_in else amount, "amount_sats": amount if is_in else -amount}
            psbt_id = None if is_in else _id("proposal", number % self.ids["proposals"])
            block = {"height": number + 1, "place": 0, "block_hash": _id("block", number) * 2}
            after = {"mined_at": START, "balance_sats": amount if is_in else 0, "first_seen_at": START}
            own = {"vault_id": vault.id, "txid": _txid(number), "chain": vault.chain, "psbt_id": psbt_id}
            return {**own, **came, **went, **block, **after}

        def coin(number: int) -> dict[str, Any]:
            own = {"chain": vault.chain, "txid": _txid(number), "vout": 0, "vault_id": vault.id}
            where = {"branch": 0, "address_index": 0, "amount_sats": amount, "script_pubkey": script}
            spent = {"spent_by": _txid(number + 1), "spent_height": number + 2}
            made = {"is_coinbase": False, "height": number + 1, "block_hash": _id("block", number) * 2}
            return {**own, **where, **spent, **made, "first_seen_at": START}

        self.ids["proposals"] = max(1, self.there.proposals)
        _insert(db, MovementRow, map(movement, range(start, count)))
        _insert(db, ChainCoinRow, map(coin, range(start, count, 2)))

    def _audit(self, db: Session, count: int) -> None:
        """Chained as the platform's own."""
        chain_id = chain_of("1", str(self.desk.workspace_id))
        head = db.get_one(AuditHeadRow, chain_id)
        like = db.scalars(select(AuditEventRow).where(AuditEventRow.chain_id == chain_id)).first()
        assert like is not None, "the desk was made by calls that are recorded"
        kept = ("chain_id", "org_uid", "workspace_uid", "user_uuid", "user_name", "role_uid", "trace_id")
        same = {name: getattr(like, name) for name in kept}
        previous, size, rows = head.head_hash, head.size, []
        kinds = tuple(Category)
        for number in range(self.there.audit, count):
            size += 1
            category = kinds[number % len(kinds)].value
            what = {"category": category, "action": "TRIED", "description": f"row {number}", "facts": "{}"}
            at = {"timestamp": format_time(START), "position": size, "event_uid": _id("event", number)}
            row = AuditRow(**{**same, **what, **at})
            hashed = event_hash(previous, row)
            rows.append({**vars(row), "prev_hash": previous, "event_hash": hashed})
            previous = hashed
        _insert(db, AuditEventRow, rows)
        moved = {"size": size, "head_hash": previous}
        db.execute(update(AuditHeadRow).where(AuditHeadRow.chain_id == chain_id).values(**moved))

    def _deliveries(self, db: Session, count: int) -> None:
        place = {"workspace_id": self.desk.workspace_id, "kind": "deposit.seen", "payload": {}}
        sequence = db.scalar(select(func.max(WebhookEventRow.sequence))) or 0
        numbers = range(self.there.deliveries, count)
        events = (
            {**place, "id": _id("told", number), "sequence": sequence + at, "created_at": START}
            for at, number in enumerate(numbers, start=1)
        )
        fate = {"status": "failed", "attempts": 9, "response_status": 500, "error": "answered 500"}
        times = {"attempted_at": START, "queued_at": START, "next_attempt_at": None}
        hook = db.get_one(WebhookRow, self.ids["webhook_id"]).id
        told = (
            {**fate, **times, "id": _id("delivery", number), "webhook_id": hook}
            | {"event_id": _id("told", number), "created_at": START - timedelta(seconds=number)}
            for number in numbers
        )
        _insert(db, WebhookEventRow, events)
        _insert(db, WebhookDeliveryRow, told)

    def _calls(self, db: Session, count: int) -> None:
        """Each has a proposal of its own."""
        like = _values(db.get_one(ProposalRow, self.ids["called"]))
        called = ContractCallRow.family_id == self.ids["called"]
        call = db.scalars(select(ContractCallRow).where(called)).one()
        same = {name: value for name, value in _values(call).items() if name != "uid"}
        numbers = range(self.there.calls, count)
        ids = [_id("call", number) for number in numbers]
        moment = {"created_at": START - timedelta(days=366), "status": "EXPIRED"}
        own = ({**like, **moment, "id": i, "family_id": i, "txid_expected": i[::-1] * 2} for i in ids)
        _insert(db, ProposalRow, own)
        self._parts(db, self.ids["called"], "EXPIRED")
        _insert(db, ContractCallRow, ({**same, "family_id": each} for each in ids))
        self.ids["call_uid"] = db.scalar(select(func.max(ContractCallRow.uid)))


def _insert(db: Session, model: type[Base], rows: Iterable[dict[str, Any]]) -> None:
    waiting = iter(rows)
    while some := list(islice(waiting, BATCH)):
        db.execute(insert(table_of(model)), some)


def _values(record: Base) -> dict[str, Any]:
    return {column.name: getattr(record, column.name) for column in record.__table__.columns}


def _id(kind: str, number: int) -> str:
    """Deterministic; 32 hexadecimal digits, as the platform's own."""
    return sha256(f"{kind} {number}".encode()).hexdigest()[:32]


def _txid(number: int) -> str:
    return _id("movement", number) * 2


def _address(number: int) -> str:
    return encode_address(p2wsh(number.to_bytes(4, "big")), NETWORK) or ""
