"""Evacuations: the plan, its start by two people, how far each vault is, and sweeping again.

The decision is recorded with a job for each vault; `evacuating` performs it.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, cast

from sqlalchemy import select
from sqlalchemy.orm import Session, load_only

from custody.schemas import evacuations as wire
from custody.schemas.changes import Change, ChangeStatus
from custody.schemas.common import Priority
from custody.schemas.proposals import ProposalStatus
from custody.server.domain.audit import Category
from custody.server.domain.credentials import Caller, WorkspaceAccess, new_id
from custody.server.domain.errors import CustodyError, NotFound, StateConflict
from custody.server.domain.evacuation import Event, State, next_state, stage_of
from custody.server.domain.lifecycle import ENDED, TO_BROADCAST
from custody.server.domain.ports import Clock, RandomBytes
from custody.server.service.audit.log import AuditLog
from custody.server.service.backends import Market
from custody.server.service.incidents.evacuation_plan import Decided, decide
from custody.server.service.incidents.evacuation_preview import PlanPage, shown
from custody.server.service.jobs.outbox import enqueue, enqueue_new
from custody.server.service.keys.quorums import AdvisoriesInForce, unfit_to_receive
from custody.server.service.people.second_person import START_EVACUATION
from custody.server.service.proposals.drafting import Drafter
from custody.server.service.requests.changes import Changes
from custody.server.service.stored_vaults import Balance, balances_of, place_of, policy_of
from custody.server.store.models import EvacuatedVault, Evacuation, PendingChange, Proposal, Vault
from custody.server.store.store import chunks
from custody.text import count

# The kind of job that evacuates one vault. Its subject is the evacuation's id and the vault's.
EVACUATE: Final = "evacuate"
MAX_SHOWN: Final = 20
# The most reasons in one error message; the plan has all of them.
MOST_REASONS: Final = 5


def subject_of(row: EvacuatedVault) -> str:
    return f"{row.evacuation_id}:{row.vault_id}"


class Evacuations:
    def __init__(
        self,
        clock: Clock,
        random: RandomBytes,
        audit: AuditLog,
        changes: Changes,
        market: Market,
        drafter: Drafter,
        in_force: AdvisoriesInForce,
    ) -> None:
        self._clock = clock
        self._random = random
        self._audit = audit
        self._changes = changes
        self._market = market
        self._drafter = drafter
        self._in_force = in_force

    def plan(
        self,
        db: Session,
        maker_id: int,
        access: WorkspaceAccess,
        request: wire.EvacuationRequest,
        part: PlanPage,
    ) -> wire.EvacuationPlan:
        """``maker_id``: the user who would start it. It only reads. Raises Invalid, ChainUnavailable."""
        quote = self._market.quote(access.chain)
        decided = decide(db, access, request, maker_id, self._in_force(db).values())
        return shown(db, access, decided, self._drafter, quote, request, part, self._in_force)

    def with_plan(self, db: Session, caller: Caller, change: Change, part: PlanPage) -> Change:
        """The change with its present plan, for a member who may confirm it."""
        is_asked = change.path == START_EVACUATION and change.status is ChangeStatus.PENDING
        if not is_asked or change.asked_by == str(caller.user_id):
            return change
        request = wire.StartEvacuationRequest.model_validate(change.body)
        try:
            plan = self.plan(db, int(change.asked_by), place_of(db, change.workspace_id), request, part)
        except CustodyError as error:
            return change.model_copy(update={"no_plan": f"Its plan cannot be shown now: {error.detail}"})
        if plan.plan_hash != request.plan_hash:
            return change.model_copy(
                update={
                    "no_plan": "The plan has changed since: decline this change, and look at the new plan."
                }
            )
        return change.model_copy(update={"plan": plan})

    def start(
        self, db: Session, caller: Caller, access: WorkspaceAccess, request: wire.StartEvacuationRequest
    ) -> wire.Evacuation:
        """Records the plan that a second person has confirmed, and a job for each vault.

        Raises Invalid; StateConflict (the plan has changed since, or moves nothing).
        """
        decided = decide(db, access, request, caller.user_id, self._in_force(db).values())
        if decided.plan_hash != request.plan_hash:
            raise StateConflict(
                f"The plan is {decided.plan_hash[:8]} by now, and not {request.plan_hash[:8]}: a key, a "
                "vault or a member changed. Look at the new plan and start that one."
            )
        _require_something(decided)
        now = self._clock()
        made = Evacuation(
            id=new_id(self._random),
            workspace_id=access.workspace_id,
            started_by=caller.user_id,
            started_by_name=caller.name,
            plan_hash=decided.plan_hash,
            priority=request.priority,
            started_at=now,
        )
        rows = [
            EvacuatedVault(
                evacuation_id=made.id,
                vault_id=each.vault.id,
                place=place,
                state=(State.PLANNED if each.cannot is None else State.LEFT).value,
                name=each.name,
                signers=[seat.user_id for seat in each.seats],
                key_ids=[seat.key_id for seat in each.seats],
                reason=each.cannot,
                asked_by=caller.user_id,
            )
            for place, each in enumerate(decided.as_moved())
        ]
        db.add(made)
        db.flush()
        db.add_all(rows)
        enqueue_new(db, EVACUATE, [subject_of(row) for row in rows if row.state == State.PLANNED.value], now)
        what = f"evacuation {made.id}, {count(len(rows), 'vault', 'vaults')}, plan {made.plan_hash}"
        self._record(db, caller, access, "EVACUATION_STARTED", what)
        return self._shown(db, [made])[0]

    def listed(
        self, db: Session, access: WorkspaceAccess, evacuation_id: str | None
    ) -> list[wire.Evacuation]:
        """The workspace's, the newest first. Raises NotFound."""
        if evacuation_id is not None:
            return self._shown(db, [_evacuation(db, access, evacuation_id)])
        query = select(Evacuation).where(Evacuation.workspace_id == access.workspace_id)
        query = query.order_by(Evacuation.started_at.desc(), Evacuation.id).limit(MAX_SHOWN)
        return self._shown(db, list(db.scalars(query)))

    def sweep_again(
        self, db: Session, caller: Caller, access: WorkspaceAccess, request: wire.SweepAgainRequest
    ) -> wire.Evacuation:
        """Sweeps the coins that no proposal spends to the same replacement. The two people's decision covers
        this while the replacement is fit to receive. Raises NotFound, StateConflict.
        """
        found = _evacuation(db, access, request.evacuation_id)
        row = db.get(EvacuatedVault, (found.id, request.vault_id), with_for_update=True)
        if row is None:
            raise NotFound("There is no such vault in this evacuation.")
        if row.replacement_id is None:
            raise StateConflict("It has no replacement: make a new plan for it.")
        unfit = unfit_to_receive(db, [row.replacement_id], self._in_force(db).values())
        if unfit:
            raise StateConflict(
                f"Nothing more is swept there: {unfit[row.replacement_id]}. Make a new plan for it."
            )
        row.state, row.reason = next_state(State(row.state), Event.AGAIN).value, None
        row.asked_by = caller.user_id
        enqueue(db, EVACUATE, subject_of(row), self._clock())
        self._record(
            db, caller, access, "EVACUATION_SWEPT_AGAIN", f"evacuation {found.id}, vault {row.vault_id}"
        )
        return self._shown(db, [found])[0]

    def _record(self, db: Session, caller: Caller, access: WorkspaceAccess, action: str, what: str) -> None:
        db.flush()
        self._audit.record(db, caller, Category.VAULTS, action, what, access=access)
        self._changes.moved(db, access.workspace_id)

    def _shown(self, db: Session, evacuations: Sequence[Evacuation]) -> list[wire.Evacuation]:
        """Evacuations of one workspace, read together: each may have 500 vaults."""
        if not evacuations:
            return []
        ids = [each.id for each in evacuations]
        query = select(EvacuatedVault).where(EvacuatedVault.evacuation_id.in_(ids))
        rows: dict[str, list[EvacuatedVault]] = defaultdict(list)
        for row in db.scalars(query.order_by(EvacuatedVault.place)):
            rows[row.evacuation_id].append(row)
        every_row = [row for some in rows.values() for row in some]
        old = {row.vault_id for row in every_row}
        swept = _sweeps(db, evacuations)
        waiting = {
            row.replacement_id
            for row in every_row
            if any(map(_is_unsent, swept[row.evacuation_id, row.vault_id]))
        }
        facts = _Facts(
            vaults=_vaults(
                db, old | {row.replacement_id for row in every_row if row.replacement_id is not None}
            ),
            balances=balances_of(db, old),
            swept=swept,
            unfit=unfit_to_receive(db, cast("set[str]", waiting - {None}), self._in_force(db).values()),
        )
        confirmed = _confirmed(db, evacuations[0].workspace_id)
        return [_report(each, rows[each.id], facts, _change_of(confirmed, each)) for each in evacuations]


def _require_something(decided: Decided) -> None:
    """A plan that moves nothing is not started. Raises StateConflict."""
    if all(each.cannot is not None for each in decided.vaults):
        reasons = [f"{each.vault.name}: {each.cannot}" for each in decided.vaults[:MOST_REASONS]]
        raise StateConflict(" ".join(("There is nothing to evacuate.", *reasons)))


def _evacuation(db: Session, access: WorkspaceAccess, evacuation_id: str) -> Evacuation:
    found = db.get(Evacuation, evacuation_id)
    if found is None or found.workspace_id != access.workspace_id:
        raise NotFound("There is no such evacuation in this workspace.")
    return found


@dataclass(frozen=True)
class _Facts:
    """What the API records of evacuations are made of. ``swept``: by evacuation and vault, all versions
    of all sweeps, the oldest first. ``unfit``: by replacement, why nothing to it is approved or sent.
    """

    vaults: Mapping[str, Vault]
    balances: Mapping[str, Balance]
    swept: Mapping[tuple[str, str], Sequence[Proposal]]
    unfit: Mapping[str, str]


def _report(
    evacuation: Evacuation, rows: Sequence[EvacuatedVault], facts: _Facts, change: PendingChange | None
) -> wire.Evacuation:
    """``change``: the change that the second person confirmed."""
    shown_rows = [_shown_row(row, facts) for row in rows]
    moved = [(row, each) for row, each in zip(rows, shown_rows, strict=True) if each.stage != "left"]
    last_seen = [
        sweep.updated_at if each.stage == "confirmed" else None
        for row, each in moved
        for sweep in facts.swept[row.evacuation_id, row.vault_id]
    ]
    return wire.Evacuation(
        evacuation_id=evacuation.id,
        workspace_id=evacuation.workspace_id,
        plan_hash=evacuation.plan_hash,
        priority=cast("Priority", evacuation.priority),
        started_by=str(evacuation.started_by),
        started_by_name=evacuation.started_by_name,
        confirmed_by_name=None if change is None else change.decided_by_name,
        asked_at=None if change is None else change.asked_at,
        started_at=evacuation.started_at,
        replaced_at=_last([row.replaced_at for row, _ in moved]),
        proposed_at=_last([row.proposed_at for row, _ in moved]),
        confirmed_at=_last(last_seen),
        vaults=shown_rows,
    )


def _last(moments: Sequence[datetime | None]) -> datetime | None:
    """The latest; None while one of them is unknown."""
    known = [moment for moment in moments if moment is not None]
    return max(known) if known and len(known) == len(moments) else None


def _vaults(db: Session, ids: Collection[str]) -> Mapping[str, Vault]:
    read = load_only(Vault.name, Vault.address, Vault.descriptor, Vault.chain, raiseload=True)
    found = (db.scalars(select(Vault).where(Vault.id.in_(some)).options(read)) for some in chunks(ids))
    return {vault.id: vault for part in found for vault in part}


# Without the PSBTs: that of a hundred coins has tens of thousands of bytes.
_OF_SWEEP = load_only(
    Proposal.evacuation_id,
    Proposal.vault_id,
    Proposal.family_id,
    Proposal.status,
    Proposal.replaced_by_id,
    Proposal.movement_sats,
    Proposal.fee_sats,
    Proposal.updated_at,
    raiseload=True,
)


# Sweeps are created after the start, perhaps by the clock of another process.
CLOCKS_DIFFER: Final = timedelta(days=1)


def _sweeps(db: Session, evacuations: Sequence[Evacuation]) -> Mapping[tuple[str, str], list[Proposal]]:
    """By evacuation and vault, read along the index of the workspace's proposals by age."""
    found: dict[tuple[str, str], list[Proposal]] = defaultdict(list)
    since = min(each.started_at for each in evacuations) - CLOCKS_DIFFER
    query = select(Proposal).where(
        Proposal.workspace_id == evacuations[0].workspace_id,
        Proposal.created_at >= since,
        Proposal.evacuation_id.in_([each.id for each in evacuations]),
    )
    query = query.options(_OF_SWEEP)
    for proposal in db.scalars(query.order_by(Proposal.created_at, Proposal.id)):
        found[proposal.evacuation_id or "", proposal.vault_id].append(proposal)
    return found


def _awaits_approval(sweep: Proposal) -> bool:
    return sweep.status == ProposalStatus.PENDING


def _is_unsent(sweep: Proposal) -> bool:
    return _awaits_approval(sweep) or sweep.status in TO_BROADCAST


def _shown_row(row: EvacuatedVault, facts: _Facts) -> wire.EvacuatedVault:
    replacement = None if row.replacement_id is None else facts.vaults[row.replacement_id]
    balance = facts.balances.get(row.vault_id, Balance())
    sweeps = facts.swept[row.evacuation_id, row.vault_id]
    left = balance.confirmed + balance.unconfirmed - balance.locked
    living = [sweep for sweep in sweeps if _is_living(sweep)]
    arriving = [(sweep, sweep.movement_sats - sweep.fee_sats) for sweep in living]
    state = State(row.state)
    why = None if replacement is None else facts.unfit.get(replacement.id)
    can = state in {State.PROPOSED, State.LEFT} and replacement is not None
    return wire.EvacuatedVault(
        vault_id=row.vault_id,
        vault_name=facts.vaults[row.vault_id].name,
        stage=stage_of(state, _newest(sweeps), left_sats=left),
        reason=row.reason
        if why is None
        else f"Nothing more is approved or sent there: {why}. {_remedy(living)}",
        replacement_id=row.replacement_id,
        replacement_name=row.name,
        replacement_address=None if replacement is None else replacement.address,
        verification_code=None if replacement is None else policy_of(replacement).verification_code,
        psbt_ids=[sweep.id for sweep in sweeps],
        unsigned_sats=sum(arrives for sweep, arrives in arriving if _awaits_approval(sweep)),
        swept_sats=sum(arrives for sweep, arrives in arriving if not _awaits_approval(sweep)),
        fee_sats=sum(sweep.fee_sats for sweep in living),
        left_sats=left,
        may_sweep_again=can and left > 0,
        replaced_at=row.replaced_at,
        proposed_at=row.proposed_at,
    )


def _remedy(sweeps: Iterable[Proposal]) -> str:
    signed = [sweep.id for sweep in sweeps if sweep.status in TO_BROADCAST]
    if signed:
        return f"Take back {', '.join(signed)}, which is signed, and make a new plan for it."
    return "Make a new plan for it."


def _is_living(sweep: Proposal) -> bool:
    is_over = ProposalStatus(sweep.status) in ENDED | {ProposalStatus.REPLACED}
    return not is_over and sweep.replaced_by_id is None


def _newest(sweeps: Sequence[Proposal]) -> list[ProposalStatus]:
    """The status of each sweep: of its newest version that has not ended, else of the last one."""
    families: dict[str, Proposal] = {}
    for sweep in sweeps:
        known = families.get(sweep.family_id)
        if known is None or _is_living(sweep) or not _is_living(known):
            families[sweep.family_id] = sweep
    return [ProposalStatus(sweep.status) for sweep in families.values()]


def _confirmed(db: Session, workspace_id: int) -> Sequence[PendingChange]:
    """The confirmed changes that start evacuations, in the order of the decisions."""
    query = select(PendingChange).where(
        PendingChange.workspace_id == workspace_id,
        PendingChange.path == START_EVACUATION,
        PendingChange.status == ChangeStatus.APPLIED.value,
    )
    return db.scalars(query.order_by(PendingChange.decided_at)).all()


def _change_of(confirmed: Iterable[PendingChange], evacuation: Evacuation) -> PendingChange | None:
    """The change that started the evacuation: its decision is stored just after the evacuation is created."""
    plan, since = (evacuation.started_by, evacuation.plan_hash), evacuation.started_at
    return next(
        (
            each
            for each in confirmed
            if (each.asked_by, each.body.get("plan_hash")) == plan
            and each.decided_at is not None
            and each.decided_at >= since
        ),
        None,
    )
