"""Random lives of proposals and their versions against an independent model, after every step: what is locked
and linked (P16, P22), what limits let through, and every figure that is shown (P18, P19, P20).

A coin is locked, and its movement counted, while some version holds it. The model keeps everything in a list,
walks the calendar a day at a time, and counts each figure again from nothing.
"""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, timezone
from secrets import token_bytes
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from sqlalchemy import select
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
from custody.server.limits.stored import (
    OutgoingAmount,
    Policies,
    usage_of_member,
    usage_of_vault,
    usages_of_vaults,
)
from custody.server.proposals.lifecycle import Lifecycle, require_newest, settle_family
from custody.server.requests.changes import Changes
from custody.server.rules.credentials import Caller, WorkspaceAccess
from custody.server.rules.lifecycle import TRANSITIONS, LifecycleEvent
from custody.server.store.models import (
    CoinLockRow,
    OrganisationRow,
    ProposalInputRow,
    ProposalRow,
    RoleRow,
    UserRow,
    VaultRow,
    WorkspaceRow,
)
from custody.server.webhooks.events import WebhookEvents
from multisig import Sats, parse_btc
from tests.support.databases import undone
from tests.support.examples import examples
from tests.support.platform import START, Clock, plain_vault
from tests.support.rows import a_proposal

USERS, ROLES, VAULTS = (1, 2), (1, 2), ("v1", "v2")
# Of each vault.
COINS = st.sets(st.integers(0, 5), min_size=1, max_size=3)
# What can no longer be mined, so far as the platform knows.
GONE = {"REJECTED", "CANCELLED", "EXPIRED", "INVALIDATED", "FAILED"}
BEGIN = datetime(2024, 1, 30, 20, tzinfo=UTC)

AMOUNTS = st.integers(1, 20) | st.integers(1, 130) | st.sampled_from([50, 51, 100, 101])
LIMITS = st.sampled_from([0, 50, 100, 150])
CYCLES = st.sampled_from([("W", 1), ("W", 5), ("W", 7), ("M", 1), ("M", 15), ("M", 29), ("M", 31)])
WAITS = st.sampled_from([1, 4, 24, 24 * 3, 24 * 7, 24 * 28, 24 * 31])
NUMBER = st.integers(0, 30)
ZONES = st.sampled_from([-11, 0, 5, 14])
STEPS = st.one_of(
    *[st.tuples(st.just("propose"), st.sampled_from(USERS), st.sampled_from(VAULTS), AMOUNTS, COINS)] * 2,
    *[st.tuples(st.just("version"), st.sampled_from(USERS), NUMBER, AMOUNTS, COINS)] * 2,
    *[st.tuples(st.just("happens"), NUMBER, NUMBER, st.booleans())] * 4,
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
    coins: frozenset[str]
    replaces: str | None = None
    status: str = "PENDING"
    keeps: bool = False

    @property
    def holds(self) -> bool:
        return self.keeps or self.status not in GONE


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
            if row.holds and row.at >= start
            if user in {None, row.user} and vault in {None, row.vault}
        ]  # fmt: skip

    def held(self) -> set[str]:
        return {coin for row in self.rows if row.holds for coin in row.coins}

    def later(self, row: Row) -> list[Row]:
        """The versions after it that live."""
        after = self.rows[self.rows.index(row) + 1 :]
        return [each for each in after if each.family == row.family and each.status not in GONE]

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
            self.store(row)
        return allowed[0], allowed[1]

    def store(self, row: Row) -> None:
        place = {"vault_id": row.vault, "created_by": row.user, "at": row.at}
        version = {"family_id": row.family, "replaces_id": row.replaces}
        stored = a_proposal(row.id, movement_sats=row.amount, m=2, n=3, **version, **place)
        self.db.add(stored)
        self.db.flush()
        same = {"proposal_id": row.id, "vout": 0, "amount_sats": 1, "branch": 0, "address_index": 0}
        self.db.add_all(
            ProposalInputRow(input_index=index, txid=coin, **same)
            for index, coin in enumerate(sorted(row.coins))
        )
        settle_family(self.db, stored)

    def happen(self, row: Row, event: LifecycleEvent, *, keep: bool) -> None:
        stored = self.db.get_one(ProposalRow, row.id)
        if event is LifecycleEvent.CANCEL:
            stored.keeps_coins = row.keeps = keep
        row.status = TRANSITIONS[Status(row.status), event].value
        Lifecycle(self.clock, Changes(), WebhookEvents(self.clock, token_bytes)).apply(self.db, stored, event)
        if row.status not in GONE or event is LifecycleEvent.RELEASED:
            row.keeps = False

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


@pytest.fixture
def place(store):
    """Two members, two roles and two vaults of one workspace; and another workspace, where one of them moves
    more than any limit.
    """
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
    return store


def compare(model: Model, made: Bench) -> None:
    """Every figure that the platform shows."""
    for user in USERS:
        shown = my_limits(made.ctx(user, model.role_of[user]), WorkspaceQuery(workspace_id=1))
        check(shown, *model.of_user(user))
    vaults = [made.db.get_one(VaultRow, vault_id) for vault_id in VAULTS]
    for vault_id, shown in limits_of_vaults(made.ctx(), vaults).items():
        check(shown, *model.of_vault(vault_id))
        assert shown.per_cycle is model.per_cycle[vault_id]
        start, _ = boundaries(model.now, model.vaults[vault_id][1])
        compare_usage(model, made.db, vault_id, start)
    compare_families(model, made.db)


def compare_usage(model: Model, db: Session, vault_id: str, start: datetime) -> None:
    """Also with a bound, above which an exact sum is not needed; and of each family beside the others."""
    counted = model.counted(model.vaults[vault_id][1], vault=vault_id)
    expected = summed(counted)
    every = usages_of_vaults(
        db, {vault_id: start, "another": start, "v1 later": model.now + timedelta(days=1)}
    )
    assert [usage.used for usage in every.values()] == [expected, 0, 0]
    for enough in (expected - 1, expected, 2 * expected):
        bound = usage_of_vault(db, vault_id, start, enough=enough)
        assert bound.used >= expected
        assert (bound.used <= enough) is (expected <= enough)
    for user in USERS:
        of_user = summed([row for row in model.rows if row.user == user and row.holds and row.at >= start])
        assert usage_of_member(db, 1, user, start).used == of_user
        bound = usage_of_member(db, 1, user, start, enough=of_user - 1)
        assert bound.used >= of_user
    for family in {row.family for row in counted}:
        largest = max(row.amount for row in counted if row.family == family)
        usage = usage_of_vault(db, vault_id, start, OutgoingAmount(0, model.now, family))
        assert (usage.held, usage.others) == (largest, expected - largest)


def compare_families(model: Model, db: Session) -> None:
    locks = {lock.txid: lock.family_id for lock in db.scalars(select(CoinLockRow))}
    assert locks.keys() == model.held()
    for coin, family in locks.items():
        holders = {row.family for row in model.rows if row.holds and coin in row.coins}
        assert family in holders, "a lock is of a family that holds the coin"
    for row in model.rows:
        shown, later = db.get_one(ProposalRow, row.id), model.later(row)
        assert shown.replaced_by_id == (later[0].id if later else None)
        if not later:
            require_newest(db, shown)


def check(shown, limit: int, used: int, reset: datetime) -> None:
    figures = [parse_btc(text) for text in (shown.limit, shown.used, shown.unused)]
    assert figures == [limit, used, max(0, limit - used)]
    assert shown.next_reset == reset
    if used <= limit:
        assert figures[1] + figures[2] == figures[0]


def propose(model: Model, made: Bench, row: Row) -> None:
    # In the order in which they come.
    row.at += timedelta(microseconds=len(model.rows))
    before = model.of_user(row.user)[1], model.of_vault(row.vault)[1]
    expected = model.allows(row)
    assert made.propose(row, model.role_of[row.user]) == expected
    if all(expected):
        model.rows.append(row)
    limit, used, _ = model.of_user(row.user)
    assert used <= max(limit, before[0])
    limit, used, _ = model.of_vault(row.vault)
    assert not model.per_cycle[row.vault] or used <= max(limit, before[1])


def move(model: Model, made: Bench, step: tuple) -> None:
    """A payment, a newer version of one, or what happens to one."""
    name = f"p{len(model.rows)}"
    match step:
        case ("propose", user, vault, amount, numbers):
            if not coins_of(vault, numbers) & model.held():
                row = Row(name, name, user, vault, amount, made.clock(), coins_of(vault, numbers))
                propose(model, made, row)
        case ("version", user, which, amount, numbers) if model.rows:
            # Of the newest that lives, with its coins and free ones beside.
            old = model.rows[which % len(model.rows)]
            if old.status not in GONE and not model.later(old):
                coins = old.coins | (coins_of(old.vault, numbers) - model.held())
                new = replace(old, id=name, user=user, amount=amount, at=made.clock(), coins=coins)
                propose(model, made, replace(new, replaces=old.id, status="PENDING", keeps=False))
        case ("happens", which, what, keep) if model.rows:
            row = model.rows[which % len(model.rows)]
            events = [event for status, event in TRANSITIONS if status == row.status]
            if events:
                made.happen(row, events[what % len(events)], keep=keep)


def coins_of(vault: str, numbers: set[int]) -> frozenset[str]:
    return frozenset(f"{VAULTS.index(vault) * 10 + number:064x}" for number in numbers)


def take(model: Model, made: Bench, step: tuple) -> None:
    match step:
        case ("propose" | "version" | "happens", *_):
            move(model, made, step)
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


def test_p16_p18_p19_p20_p22_the_platform_and_the_model_agree(place) -> None:
    # What a limit needs: it draws nothing, and asks no chain.
    @settings(max_examples=examples(20), suppress_health_check=list(HealthCheck))
    @given(st.lists(STEPS, min_size=20, max_size=45))
    def live(steps: list[tuple]) -> None:
        model, clock = Model(), Clock(BEGIN)
        audit = AuditLog(clock, token_bytes, WebhookEvents(clock, token_bytes))
        tools = SimpleNamespace(clock=clock, policies=Policies(), audit=audit)
        with undone(place) as db:
            made = Bench(db, clock, SimpleNamespace(tools=tools))
            for step in steps:
                note(str(step))
                take(model, made, step)
                compare(model, made)

    live()
