"""Random lives of movements through the service, on SQLite, against an independent model.

The model keeps everything in a list, walks the calendar a day at a time, and counts each figure again from
nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from secrets import token_bytes
from types import SimpleNamespace

from hypothesis import given, note, settings
from hypothesis import strategies as st
from sqlalchemy.orm import Session

from custody.schemas.common import WorkspaceQuery
from custody.schemas.limits import UpdateRolePoliciesRequest, UpdateVaultRequest
from custody.schemas.proposals import ProposalStatus as Status
from custody.server.audit.log import AuditLog
from custody.server.calls import Ctx
from custody.server.errors import RoleLimitExceeded, VaultLimitExceeded
from custody.server.limits.calls import (
    limits_of_vaults,
    my_limits,
    require_in_limits,
    update_role_policies,
    update_vault,
)
from custody.server.limits.stored import OutgoingAmount, Policies
from custody.server.rules.credentials import Caller, WorkspaceAccess
from custody.server.store import Store, sqlite_url
from custody.server.store.models import OrganisationRow, ProposalRow, RoleRow, UserRow, VaultRow, WorkspaceRow
from multisig import Sats, parse_btc
from tests.support.databases import make_sqlite, undone
from tests.support.examples import examples
from tests.support.platform import START, Clock, plain_vault
from tests.support.rows import a_proposal

USERS, ROLES, VAULTS = (1, 2), (1, 2), ("v1", "v2")
# What can no longer be mined, so far as the platform knows.
GONE = {"REJECTED", "CANCELLED", "EXPIRED", "INVALIDATED", "FAILED"}
BEGIN = datetime(2024, 1, 30, 20, tzinfo=UTC)

AMOUNTS = st.integers(1, 130) | st.sampled_from([50, 51, 100, 101])
LIMITS = st.sampled_from([0, 50, 100, 150])
CYCLES = st.sampled_from([("W", 1), ("W", 5), ("W", 7), ("M", 1), ("M", 15), ("M", 29), ("M", 31)])
WAITS = st.sampled_from([1, 4, 24, 24 * 3, 24 * 7, 24 * 28, 24 * 31])
ZONES = st.sampled_from([-11, 0, 5, 14])
STEPS = st.one_of(
    st.tuples(
        st.just("propose"), st.sampled_from(USERS), st.sampled_from(VAULTS), AMOUNTS,
        st.none() | st.integers(0, 30),
    ),
    st.tuples(st.just("propose"), st.sampled_from(USERS), st.sampled_from(VAULTS), AMOUNTS, st.none()),
    st.tuples(st.just("becomes"), st.integers(0, 30), st.sampled_from(list(Status))),
    st.tuples(st.just("role"), st.sampled_from(ROLES), LIMITS, CYCLES),
    st.tuples(st.just("vault"), st.sampled_from(VAULTS), LIMITS, CYCLES),
    st.tuples(st.just("switch"), st.sampled_from(VAULTS), st.booleans()),
    st.tuples(st.just("promote"), st.sampled_from(USERS), st.sampled_from(ROLES)),
    st.tuples(st.just("wait"), WAITS, ZONES),
)  # fmt: skip


# --- the model ----------------------------------------------------------------------------------------------


@dataclass
class Row:
    id: str
    family: str
    user: int
    vault: str
    amount: int
    at: datetime
    status: str = "PENDING"


def begins_a_cycle(day: datetime, cycle: tuple[str, int]) -> bool:
    period, number = cycle
    if period == "W":
        return day.isoweekday() == number
    last_of_month = (day + timedelta(days=1)).day == 1
    return day.day == number or (last_of_month and number > day.day)


def boundaries(now: datetime, cycle: tuple[str, int]) -> tuple[datetime, datetime]:
    day = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    start, end = day, day + timedelta(days=1)
    while not begins_a_cycle(start, cycle):
        start -= timedelta(days=1)
    while not begins_a_cycle(end, cycle):
        end += timedelta(days=1)
    return start, end


def summed(rows: list[Row]) -> int:
    """Of each family one version can be mined: the worst that can happen."""
    return sum(max(r.amount for r in rows if r.family == family) for family in {r.family for r in rows})


@dataclass
class Model:
    now: datetime = BEGIN
    rows: list[Row] = field(default_factory=list)
    role_of: dict[int, int] = field(default_factory=lambda: dict.fromkeys(USERS, 1))
    roles: dict[int, tuple[int, tuple[str, int]]] = field(
        default_factory=lambda: dict.fromkeys(ROLES, (100, ("M", 1)))
    )
    vaults: dict[str, tuple[int, tuple[str, int]]] = field(
        default_factory=lambda: dict.fromkeys(VAULTS, (100, ("M", 1)))
    )
    per_cycle: dict[str, bool] = field(default_factory=lambda: dict.fromkeys(VAULTS, False))

    def counted(
        self, cycle: tuple[str, int], *, user: int | None = None, vault: str | None = None
    ) -> list[Row]:
        start, _ = boundaries(self.now, cycle)
        return [
            row
            for row in self.rows
            if row.status not in GONE and row.at >= start
            if user in {None, row.user} and vault in {None, row.vault}
        ]  # fmt: skip

    def of_user(self, user: int) -> tuple[int, int, datetime]:
        limit, cycle = self.roles[self.role_of[user]]
        return limit, summed(self.counted(cycle, user=user)), boundaries(self.now, cycle)[1]

    def of_vault(self, vault: str) -> tuple[int, int, datetime]:
        limit, cycle = self.vaults[vault]
        return limit, summed(self.counted(cycle, vault=vault)), boundaries(self.now, cycle)[1]

    def allows(self, row: Row) -> tuple[bool, bool]:
        """By the role, and by the vault: what the sum would be with it."""
        limit, cycle = self.roles[self.role_of[row.user]]
        mine = self.counted(cycle, user=row.user)
        role = summed([*mine, row]) <= limit or summed([*mine, row]) == summed(mine)
        limit, cycle = self.vaults[row.vault]
        there = self.counted(cycle, vault=row.vault)
        raises_nothing = summed([*there, row]) == summed(there)
        compared = summed([*there, row]) if self.per_cycle[row.vault] else row.amount
        return role, compared <= limit or raises_nothing


# --- the service --------------------------------------------------------------------------------------------


@dataclass
class Bench:
    """The use cases over one transaction."""

    db: Session
    clock: Clock
    services: SimpleNamespace

    def propose(self, row: Row, role_id: int) -> tuple[bool, bool]:
        """Whether role and vault let it through; where both do, it is stored."""
        family = None if row.family == row.id else row.family
        movement = OutgoingAmount(Sats(row.amount), self.clock(), family)
        allowed = [True, True]
        ctx, vault = self.ctx(row.user, role_id), self.db.get_one(VaultRow, row.vault)
        try:
            require_in_limits(ctx, vault, movement)
        except RoleLimitExceeded:
            allowed[0] = False
        except VaultLimitExceeded:
            allowed[1] = False
        try:
            require_in_limits(ctx, vault, replace(movement, for_role=False))
        except VaultLimitExceeded:
            allowed[1] = False
        else:
            assert allowed[1], "the vault's limit is the same, whoever else it counts for"
        if all(allowed):
            self.db.add(stored(row))
            self.db.flush()
        return allowed[0], allowed[1]

    def ctx(self, user: int = 1, role_id: int = 1) -> Ctx:
        access = WorkspaceAccess(1, 1, "testnet", "regtest", role_id, frozenset())
        return Ctx(self.services, Caller(user, 1, "", ""), self.db, access)

    def replace_role(self, role_id: int, limit: int, cycle: tuple[str, int]) -> None:
        terms = {"new_transaction_limit": btc(limit), "cycle_period": cycle[0], "cycle_day": cycle[1]}
        request = UpdateRolePoliciesRequest(role_id=role_id, workspace_id=1, **terms)
        update_role_policies(self.ctx(), request)

    def replace_vault(
        self, vault_id: str, limit: int, cycle: tuple[str, int], *, per_cycle: bool | None = None
    ) -> None:
        terms = {"transaction_limit": btc(limit), "cycle_period": cycle[0], "cycle_day": cycle[1]}
        request = UpdateVaultRequest(vault_id=vault_id, workspace_id=1, per_cycle=per_cycle, **terms)
        update_vault(self.ctx(), request)


def btc(amount: int) -> str:
    return f"0.{amount:08d}"


def stored(row: Row) -> ProposalRow:
    place = {"vault_id": row.vault, "created_by": row.user, "at": row.at}
    version = {"family_id": row.family, "replaces_id": None if row.family == row.id else row.family}
    return a_proposal(row.id, status=row.status, movement_sats=row.amount, **version, **place)


@contextmanager
def place(folder: Path) -> Iterator[Store]:
    """Two members, two roles and two vaults of one workspace; and another workspace, where one of them moves
    more than any limit.
    """
    make_sqlite(folder / "custody.db")
    store = Store.open(sqlite_url(folder / "custody.db"))
    with store.write() as db:
        db.add_all([UserRow(id=user, email=f"{user}@example.org", created_at=START) for user in USERS])
        db.add(OrganisationRow(id=1, name="Acme", created_at=START))
        db.flush()
        chain = {"network": "testnet", "chain": "regtest"}
        for number in (1, 2):
            named = {"id": number, "organisation_id": 1, "name": str(number), "description": ""}
            db.add(WorkspaceRow(**named, created_at=START, **chain))
        db.flush()
        db.add(plain_vault("elsewhere", 2))
        db.flush()
        away = {"workspace_id": 2, "vault_id": "elsewhere", "created_by": 1, "at": BEGIN}
        db.add(a_proposal("away", movement_sats=10**6, **away))
        for role in ROLES:
            terms = {"limit_sats": 100, "cycle_period": "M", "cycle_day": 1}
            terms |= {"created_at": START, "updated_at": START}
            db.add(RoleRow(id=role, workspace_id=1, name=str(role), description="", **terms))
        for vault_id in VAULTS:
            vault = plain_vault(vault_id)
            vault.limit_sats, vault.cycle_period, vault.cycle_day = 100, "M", 1
            db.add(vault)
    try:
        yield store
    finally:
        store.close()


@contextmanager
def bench(store: Store) -> Iterator[Bench]:
    clock = Clock(BEGIN)
    # What a limit needs: it draws nothing, and asks no chain.
    tools = SimpleNamespace(clock=clock, policies=Policies(), audit=AuditLog(clock, token_bytes))
    with undone(store) as db:
        yield Bench(db, clock, SimpleNamespace(tools=tools))


def compare(model: Model, made: Bench) -> None:
    """Every figure that the platform shows."""
    for user in USERS:
        shown = my_limits(made.ctx(user, model.role_of[user]), WorkspaceQuery(workspace_id=1))
        check(shown, *model.of_user(user))
    vaults = [made.db.get_one(VaultRow, vault_id) for vault_id in VAULTS]
    for vault_id, shown in limits_of_vaults(made.ctx(), vaults).items():
        check(shown, *model.of_vault(vault_id))
        assert shown.per_cycle is model.per_cycle[vault_id]


def check(shown, limit: int, used: int, reset: datetime) -> None:
    figures = [parse_btc(text) for text in (shown.limit, shown.used, shown.unused)]
    assert figures == [limit, used, max(0, limit - used)]
    assert shown.next_reset == reset
    if used <= limit:
        assert figures[1] + figures[2] == figures[0]


def take(model: Model, made: Bench, step: tuple) -> None:
    match step:
        case ("propose", user, vault, amount, version_of):
            row = Row(f"p{len(model.rows)}", "", user, vault, amount, made.clock())
            near = [r for r in model.rows if r.vault == vault]
            row.family = near[version_of % len(near)].family if near and version_of is not None else row.id
            before = model.of_user(user)[1], model.of_vault(vault)[1]
            expected = model.allows(row)
            assert made.propose(row, model.role_of[user]) == expected
            if all(expected):
                model.rows.append(row)
            limit, used, _ = model.of_user(user)
            assert used <= max(limit, before[0])
            limit, used, _ = model.of_vault(vault)
            assert not model.per_cycle[vault] or used <= max(limit, before[1])
        case ("becomes", which, status) if model.rows:
            row = model.rows[which % len(model.rows)]
            row.status = status.value
            made.db.get_one(ProposalRow, row.id).status = status.value
            made.db.flush()
        case ("role", role, limit, cycle):
            model.roles[role] = limit, cycle
            made.replace_role(role, limit, cycle)
        case ("vault", vault, limit, cycle):
            model.vaults[vault] = limit, cycle
            made.replace_vault(vault, limit, cycle)
        case ("switch", vault, is_per_cycle):
            model.per_cycle[vault] = is_per_cycle
            made.replace_vault(vault, *model.vaults[vault], per_cycle=is_per_cycle)
        case ("promote", user, role):
            model.role_of[user] = role
        case ("wait", hours, zone):
            made.clock.advance(hours=hours)
            made.clock.now = made.clock.now.astimezone(timezone(timedelta(hours=zone)))
            model.now = made.clock.now


def test_p18_p19_p20_p22_the_platform_and_the_model_agree(tmp_path: Path) -> None:
    with place(tmp_path) as store:

        @settings(max_examples=examples(40))
        @given(st.lists(STEPS, max_size=30))
        def live(steps: list[tuple]) -> None:
            model = Model()
            with bench(store) as made:
                for step in steps:
                    note(str(step))
                    take(model, made, step)
                    compare(model, made)

        live()
