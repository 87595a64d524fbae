"""P59: a tail that is cut between two checkpoints, against what clients were told (`custody.receipts`)."""

import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import delete, select, update

from custody.receipts import (
    HEADER,
    MAX_CHAINS,
    HeadMismatch,
    MissingReceipts,
    NoReceipts,
    Receipt,
    Receipts,
    Record,
    read_record,
    write_record,
)
from custody.server.domain.audit import Category, event_hash
from custody.server.domain.credentials import PLATFORM
from custody.server.service.audit.checkpoints import Checkpoints
from custody.server.service.audit.log import chained_rows, verify
from custody.server.service.audit.verification import check_everything
from custody.server.service.stored_vaults import place_of
from custody.server.store.models import AuditEvent, AuditHead
from tests.support.custody import SHOP, Desk, ok
from tests.support.platform import World, open_world
from tests.support.sdk import sdk

CHAIN, ALICE = "workspace:1", "alice@example.org"
URL = "https://custody.example"
ONE, TWO, OTHER_TWO = (Receipt(CHAIN, size, mark * 32) for size, mark in ((1, "aa"), (2, "bb"), (2, "cc")))


@pytest.fixture
def world(tmp_path: Path, database: str) -> Iterator[World]:
    with open_world(tmp_path / "state", database_url=database) as opened:
        opened.organisation("Acme", ALICE)
        opened.member(1, "bob@example.org")
        yield opened


def head(world: World) -> Receipt:
    with world.platform.services.store.read() as db:
        stored = db.get_one(AuditHead, CHAIN)
        return Receipt(CHAIN, stored.size, stored.head_hash.hex())


def cut(world: World, rows: int = 1) -> None:
    """Rows and head, consistently: the chain alone shows nothing."""
    store = world.platform.services.store
    with store.write() as db:
        size = db.get_one(AuditHead, CHAIN).size - rows
        here = AuditEvent.chain_id == CHAIN
        db.execute(delete(AuditEvent).where(here, AuditEvent.position > size))
        last = db.scalar(select(AuditEvent.event_hash).where(here, AuditEvent.position == size))
        db.execute(update(AuditHead).where(AuditHead.chain_id == CHAIN).values(size=size, head_hash=last))
    assert verify(store) == ()


def rewrite_last(world: World) -> None:
    """The last row says something else, and hashes to it."""
    store = world.platform.services.store
    with store.write() as db:
        *_, before, last = chained_rows(db, AuditEvent.chain_id == CHAIN)
        row = replace(last.row, description="nothing happened")
        hashed = event_hash(before.event_hash, row)
        here = AuditEvent.chain_id == CHAIN, AuditEvent.position == row.position
        db.execute(update(AuditEvent).where(*here).values(description=row.description, event_hash=hashed))
        db.execute(update(AuditHead).where(AuditHead.chain_id == CHAIN).values(head_hash=hashed))
    assert verify(store) == ()


def test_p59_each_answer_says_where_the_workspaces_log_ends(world: World) -> None:
    """With what the call recorded itself; one that is about no workspace says nothing."""
    alice = world.as_user(ALICE)
    before = head(world)
    read = alice.get("/api/v1/list-wallets", workspace_id=1)
    assert read.headers[HEADER] == str(before)
    body = {"workspace_id": 1, "name": "Shop", "address": SHOP}
    written = alice.post("/api/v1/add-whitelist-address", body, **{"Idempotency-Key": "one"})
    assert written.headers[HEADER] == str(head(world))
    assert head(world).size == before.size + 1
    again = alice.post("/api/v1/add-whitelist-address", body, **{"Idempotency-Key": "one"})
    assert again.headers[HEADER] == written.headers[HEADER]
    assert HEADER not in alice.post("/api/v1/add-whitelist-address", body).headers, "a refusal"
    assert HEADER not in alice.get("/api/v1/get-user-info").headers


def test_p59_so_does_a_long_poll_and_an_approval(desk: Desk) -> None:
    desk.deposit(200_000)
    psbt_id = ok(desk.propose(50_000))["psbt_id"]
    answer = desk.submit("alice", psbt_id, desk.signed("alice", psbt_id))
    assert answer.headers[HEADER] == str(head(desk.world))
    listed = desk.admin.get("/api/v1/psbt", workspace_id=1)
    again = desk.admin.http.get(
        "/api/v1/psbt",
        params={"workspace_id": 1},
        headers={**desk.admin.headers, "If-None-Match": listed.headers["ETag"]},
    )
    shown = desk.admin.get("/api/v1/psbt", psbt_id=psbt_id)
    assert again.status_code == 304
    assert {each.headers[HEADER] for each in (listed, again, shown)} == {str(head(desk.world))}


@pytest.mark.parametrize("forge", [cut, rewrite_last])
def test_p59_what_was_cut_after_the_last_checkpoint_is_noticed(world: World, tmp_path: Path, forge) -> None:
    """By a client at its next call, and by verify with the client's file; without either by nobody."""
    checkpoints, store = world.platform.background.checkpoints, world.platform.services.store
    assert checkpoints.make() is not None
    world.member(1, "carol@example.org")
    doubts: list[HeadMismatch | MissingReceipts] = []
    file = tmp_path / "receipts"
    alice = sdk(world, ALICE)
    alice.core.receipts = Receipts.in_file(file, URL, doubts.append)
    alice.list_wallets(1)
    known = head(world)
    assert read_record(file) == Record(URL, {CHAIN: known}, frozenset({"/api/v1/list-wallets"}))

    def findings(*receipts: Path) -> list[str]:
        report = check_everything(store, (checkpoints.path,), frozenset(checkpoints.public_keys()), receipts)
        return [f"{each.where} {each.place}" for each in report.findings]

    assert findings(file) == []
    forge(world)
    assert findings() == [], "no checkpoint names it"
    assert findings(file) == [f"{CHAIN} {known.size}"]
    alice.list_wallets(1)
    assert doubts == [HeadMismatch(known, head(world))]
    assert "cut or rewritten" in str(doubts[0])
    assert read_record(file).receipts == {CHAIN: known}, "what is known stays known"


def test_p59_a_checkpoint_comes_with_the_hundredth_row_and_at_the_stop(world: World) -> None:
    background, log = world.platform.background, world.platform.services.audit
    checkpoints = background.checkpoints

    def append(count: int) -> None:
        with world.platform.services.store.write() as db:
            for _ in range(count):
                log.record(db, PLATFORM, Category.JOBS, "TRIED", "", access=place_of(db, 1))

    assert checkpoints.run_due() == 1
    append(99)
    assert checkpoints.run_due() == 0
    append(1)
    assert checkpoints.run_due() == 1
    append(1)
    lines = len(checkpoints.path.read_bytes().splitlines())
    with background.running():
        pass
    assert len(checkpoints.path.read_bytes().splitlines()) > lines
    assert checkpoints.make() is None, "nothing is left unsigned"
    other = Checkpoints(
        world.platform.services.store,
        world.clock,
        world.platform.random,
        log,
        world.platform.services.secrets,
        checkpoints.path.with_name("another"),
    )
    append(1)
    other.at_stop()
    assert not other.path.exists(), "a process that never signed begins no file of its own"


class TestReceipts:
    def test_goes_on_and_does_not(self) -> None:
        doubts: list[HeadMismatch | MissingReceipts] = []
        receipts = Receipts(on_doubt=doubts.append)
        for told in (ONE, TWO, TWO):
            receipts.hear(str(told), receipts.known)
        assert (receipts.known[CHAIN], doubts) == (TWO, [])
        for told in (ONE, OTHER_TWO):
            receipts.hear(str(told), receipts.known)
        assert (receipts.known[CHAIN], doubts) == (
            TWO,
            [HeadMismatch(TWO, ONE), HeadMismatch(TWO, OTHER_TWO)],
        )

    def test_of_answers_that_pass_each_other_the_older_one_is_no_doubt(self) -> None:
        doubts: list[HeadMismatch | MissingReceipts] = []
        receipts = Receipts(Record(receipts={CHAIN: ONE}), on_doubt=doubts.append)
        asked_with = receipts.known
        receipts.hear(str(TWO), asked_with)
        receipts.hear(str(ONE), asked_with)
        assert (receipts.known[CHAIN], doubts) == (TWO, [])

    @pytest.mark.parametrize(
        "text", ["", "workspace:1 2", f"platform 1 {'aa' * 32}", f"{ONE} ", f"workspace:1 0 {'aa' * 32}"]
    )
    def test_what_is_no_receipt_says_nothing(self, text: str) -> None:
        receipts = Receipts()
        receipts.hear(text, receipts.known)
        assert receipts.known == {}

    def test_they_are_bounded(self) -> None:
        chains = [f"workspace:{number}" for number in range(1, MAX_CHAINS + 1)]
        receipts = Receipts(Record(receipts={chain: Receipt(chain, 1, "aa" * 32) for chain in chains}))
        receipts.hear(f"workspace:{MAX_CHAINS + 1} 1 {'aa' * 32}", receipts.known)
        assert len(receipts.known) == MAX_CHAINS

    def test_the_file_is_the_owners_and_whole(self, tmp_path: Path) -> None:
        file = tmp_path / "receipts"
        write_record(file, Record(receipts={CHAIN: TWO}))
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert read_record(file).receipts == {CHAIN: TWO}
        file.write_text(f"{TWO}\nnonsense\n")
        with pytest.raises(NoReceipts, match="not a receipt"):
            read_record(file)
