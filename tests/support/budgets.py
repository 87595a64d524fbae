"""The statements and transactions of calls and pages beside what each may take, by the table `budgets.csv`:
calls and jobs in a small workspace, and each page by its path in one as large as they get.
"""

import csv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.asgi import asgi_client
from tests.support.console import Visitor
from tests.support.custody import SHOP, Desk, ok
from tests.support.databases import statements_of
from tests.support.token_desk import BOB, TokenDesk

# More statements than this need a reason.
FEW = 20
TABLE = Path(__file__).with_name("budgets.csv")


@dataclass(frozen=True)
class Budget:
    statements: int
    transactions: int
    reason: str = ""


def measured(desk: Desk) -> dict[str, tuple[int, int]]:
    """Statements and transactions of the calls and jobs, at a desk where nothing has happened yet."""
    found: dict[str, tuple[int, int]] = {}
    store = desk.world.platform.services.store

    @contextmanager
    def row(name: str) -> Iterator[None]:
        with statements_of(store) as asked:
            yield
        found[name] = len(asked), asked.transactions

    desk.deposit(400_000, 400_000, 400_000)
    tokens = TokenDesk(desk)
    tokens.look()
    # What is asked once in a process is no part of a call.
    ok(desk.propose(50_000))
    with row("create-psbt"):
        psbt_id = ok(desk.propose(50_000))["psbt_id"]
    with row("psbt"):
        desk.proposal(psbt_id)
    first, last = (desk.signed(name, psbt_id) for name in ("alice", "bob"))
    with row("sign-psbt"):
        ok(desk.submit("alice", psbt_id, first))
    with row("sign-psbt at the threshold"):
        ok(desk.submit("bob", psbt_id, last))
    here = f"/console/w/{desk.workspace_id}"
    vault, new = f"{here}/vaults/{desk.vault['id']}", f"{here}/proposals/new"
    with asgi_client(desk.world.platform.asgi) as http:
        person = Visitor(http).sign_in("admin@example.org")
        pages = {"overview": f"{here}/", "a vault": vault, "members": f"{here}/members", "payment: form": new}
        for name, path in pages.items():
            person.open(path)
            with row(name):
                person.open(path)
        with row("payment: review"):
            person.send(new, recipient=SHOP, amount="0.0005")
        with row("payment: confirm and result"):
            person.confirm(new)
    tokens.fund(*[300_000] * 6)
    uid = tokens.started()
    ok(tokens.call(uid, "transfer", BOB, 100))
    with row("token transfer"):
        ok(tokens.call(uid, "transfer", BOB, 100))
    return found


def budgets() -> dict[str, Budget]:
    with TABLE.open(newline="") as file:
        return {
            row["name"]: Budget(int(row["statements"]), int(row["transactions"]), row["reason"])
            for row in csv.DictReader(file)
        }


def assert_as_budgeted(found: Mapping[str, tuple[int, int]]) -> None:
    """``found``: of all calls and jobs, or of all pages."""
    are_pages = next(iter(found)).startswith("/")
    known = {name: each for name, each in budgets().items() if name.startswith("/") is are_pages}
    other = set(found) ^ set(known)
    assert not other, f"with no row, or no longer there: {other}"
    rows = {name: (found[name], (each.statements, each.transactions)) for name, each in known.items()}
    more = {name: row for name, row in rows.items() if row[0][0] > row[1][0] or row[0][1] > row[1][1]}
    assert not more, f"more than the budget, which is behind: {more}"
    less = {name: row for name, row in rows.items() if row[0] != row[1]}
    assert not less, f"less than the budget, which is behind: lower it: {less}"
    assert [name for name, each in known.items() if each.statements > FEW and not each.reason] == []
