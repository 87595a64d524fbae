"""P102: whatever one stored row holds, every list and every page answers, with the others in it.

The property goes over each column of each table that a list reads, in the file, past every check of the
program: out of range, null where the schema allows it, nonsense.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Column, text
from sqlalchemy.exc import IntegrityError

from custody.schemas.asset_tokens import ContractCallsQuery
from custody.schemas.calls import CALLS
from custody.server.console.application import ROOT, ROWS
from custody.server.store.models import Base, OrganisationRow
from tests.custody.server.console.test_every_page import fill
from tests.support.custody import SHOP, Desk, ok
from tests.support.databases import statements_of
from tests.support.examples import drawn
from tests.support.token_desk import TokenDesk

HOSTILE = {"INTEGER": (-1, 99, 2**62), "BIGINT": (-1, 99, 2**62), "BOOLEAN": (7,)}
NONSENSE = ("nonsense", "[7]")
# Whom a caller is, and what they may, is no entry of a list: without it there is no caller. Advisories stand
# alone under their publisher's signature. Blocks are compared with the node: a call says where they differ.
NOT_ENTRIES = {
    "access_tokens", "refresh_tokens", "organisations",
    "workspaces", "role_permissions", "audit_heads", "sessions",
    "chain_blocks", "token_blocks",
}  # fmt: skip
# The lists that show a table's rows as their entries.
OF_TABLE = {
    "vaults": "/api/v1/list-wallets",
    "proposals": "/api/v1/psbt",
    "roles": "/api/v1/get-roles-and-perms-detailed",
    "address_book": "/api/v1/get-whitelist-addresses",
    "webhooks": "/api/v1/webhooks",
    "service_accounts": "/api/v1/service-accounts",
    "pending_changes": "/api/v1/changes",
    "movements": "/api/v1/vault-history",
    "chain_coins": "/api/v1/vault-coins",
    "users": "/api/v1/get-users-from-workspace",
    "audit_events": "/api/v1/get-logs",
}


def lists(desk: Desk) -> dict[str, str]:
    """Every reading call whose answer is a list, or a page of one, by its path: the whole address."""
    organisation = desk.rows(OrganisationRow)[0]
    given = {
        "workspace_id": desk.workspace_id, "workspace_uid": desk.workspace_id, "org_uid": organisation.id,
        "vault_id": desk.vault["id"], "contract_uid": 1, "webhook_id": None,
        "month": f"{desk.world.clock() - timedelta(days=40):%Y-%m}",
    }  # fmt: skip
    found = {}
    for row in CALLS:
        is_list = "list[" in str(row.answer_type) or "Listed" in str(row.answer_type)
        is_page = hasattr(row.answer_type, "model_fields") and "unreadable" in row.answer_type.model_fields
        if row.method != "GET" or not (is_list or is_page) or row.path.endswith("deliveries"):
            continue
        fields = {} if row.shape is None else row.shape.model_fields
        wanted = {name: given[name] for name in fields if given.get(name) is not None}
        if row.shape is ContractCallsQuery:
            del wanted["contract_uid"]
        found[row.path] = row.path + "?" + "&".join(f"{name}={value}" for name, value in wanted.items())
    return found


def pages(desk: Desk) -> list[str]:
    """Every page without a record in its path, and those of a vault."""
    workspace = f"/w/{desk.workspace_id}"
    paths = (row.path.replace("/w/{workspace_id:int}", workspace) for row in ROWS if row.method == "GET")
    vault = f"{workspace}/vaults/{desk.vault['id']}"
    plain = {path for path in paths if "{" not in path} | {
        f"{vault}{page}" for page in ("", "/movements", "/coins", "/statement")
    }
    return sorted(ROOT + path for path in plain)


def entries(answer: Any) -> list:
    """Those that are shown."""
    if isinstance(answer, list):
        return [each for each in answer if not isinstance(each.get("unreadable"), str)]
    return next(value for name, value in answer.items() if isinstance(value, list) and name != "unreadable")


@pytest.fixture
def full(desk) -> Desk:
    tokens = TokenDesk(desk)
    tokens.fund(100_000, 100_000)
    uid = tokens.started()
    # What an outsider found: recipients of a call, which pays no bitcoin.
    paid = tokens.call(uid, "transfer", SHOP, 1, recipients=[SHOP])
    tokens.finish(ok(paid)["psbt_id"])
    fill(desk)
    tokens.look()
    return desk


def values(column: Column) -> Iterator[object]:
    kind = str(column.type.compile())
    if column.nullable:
        yield None
    yield from HOSTILE.get(kind, NONSENSE if "BLOB" not in kind else (b"nonsense",))


CASES = [
    (table, column, value)
    for table in Base.metadata.tables.values()
    if table.name not in NOT_ENTRIES
    for column in table.columns
    # A row with another key is another row.
    if not column.primary_key
    for value in values(column)
]
# How many pages are asked beside the lists that read the table.
PAGES = 3


def reading(desk: Desk, ask: Callable[[str], object], paths: Iterable[str]) -> dict[str, list[str]]:
    """By table, the addresses whose answers are made of it."""
    found = defaultdict(list)
    for path in paths:
        with statements_of(desk.store) as seen:
            ask(path)
        said = "\n".join(statement for statement, _ in seen)
        for table in Base.metadata.tables:
            if re.search(rf"\b(FROM|JOIN) {table}\b", said):
                found[table].append(path)
    return found


def test_p102_one_altered_row_takes_no_list_and_no_page_away(full, browse):
    """In SQLite's file, which takes any value in any column."""
    desk, person, calls = full, browse("admin"), lists(full)

    def ask(path: str) -> int:
        """How many entries the list has; 0 for a page."""
        desk.world.clock.advance(seconds=1)
        if path.startswith(ROOT):
            answer = person.http.get(path)
        else:
            answer = desk.admin.http.get(path, headers=desk.admin.headers)
        # The page of the very row says what is the matter with it.
        is_told = desk.vault["id"] in path and answer.status_code == 404 and "cannot be read" in answer.text
        assert answer.status_code == 200 or is_told, answer.text[:200]
        return 0 if path.startswith(ROOT) else len(entries(answer.json()))

    plain = [path for path in pages(desk) if person.http.get(path).status_code == 200]
    assert len(plain) > 15
    before = {path: ask(path) for path in calls.values()}
    reads = reading(desk, ask, [*before, *plain])
    faults = []
    for table, column, value in drawn(CASES, 60, of="altered rows"):
        paths = reads[table.name]
        some = [path for path in paths if path in before]
        some += drawn([path for path in paths if path not in before], PAGES, of=f"{column} {value}")
        own = calls.get(OF_TABLE.get(table.name, ""))
        with altered(desk, column, value) as is_altered:
            for path in some if is_altered else ():
                try:
                    left = ask(path)
                except AssertionError as error:
                    faults.append(f"{column} = {value!r}, {path}: {str(error).splitlines()[0][:80]}")
                else:
                    if path == own and left < before[path] - 1:
                        faults.append(f"{column} = {value!r}, {path}: others are gone")
    assert not faults, "\n".join(faults)


@contextmanager
def altered(desk: Desk, column: Column, value: object) -> Iterator[bool]:
    """One column of the table's newest row holds the value meanwhile; False where the schema refuses it."""
    engine, table = desk.store._database.writing, column.table.name
    newest = text(f"SELECT rowid, {column.name} FROM {table} ORDER BY rowid DESC")
    change = text(f"UPDATE {table} SET {column.name} = :value WHERE rowid = :rowid")
    with engine.connect() as db:
        found = db.execute(newest).first()
    if found is None:
        yield False
        return
    try:
        with engine.begin() as db:
            db.execute(change, {"value": value, "rowid": found[0]})
    except IntegrityError:
        yield False
        return
    yield True
    with engine.begin() as db:
        db.execute(change, {"value": found[1], "rowid": found[0]})
