"""Mails to people for whom something waits, a proposal for their signature, a change for their confirmation,
or a check of their key: one job for each person, and one mail with all that waits when it is sent.

What is signed or decided by then is not in it. At least once, like every mail.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Select, String, cast, exists, select
from sqlalchemy.orm import Session

from custody.common.text import btc, day_words, minute
from custody.schemas.changes import ChangeStatus
from custody.schemas.proposals import ProposalStatus, TxType
from custody.server.jobs.outbox import IS_OPEN, Again, Finish, JobDone, Task, enqueue_new
from custody.server.keys.quorums import approver, due
from custody.server.mail.jobs import WAITING, one_line, plain, sent
from custody.server.mail.mailer import Mail, Mailer
from custody.server.people.staff import organisations_of
from custody.server.proposals.lifecycle import NOT_HELD
from custody.server.proposals.records import has_decided
from custody.server.rules.ports import Clock
from custody.server.second_person.requirement import confirms
from custody.server.store import Store
from custody.server.store.models import (
    JobRow,
    KeyRow,
    MembershipRow,
    OrganisationRow,
    PendingChangeRow,
    ProposalRow,
    UserRow,
    VaultRow,
    VaultSignerRow,
    WorkspaceRow,
)

# Requests that follow each other within this time share a mail.
GATHER: Final = timedelta(minutes=2)
# At most one mail to each person in this time.
INTERVAL: Final = timedelta(minutes=30)
# Of the mails about key checks, where nothing else waits.
REMIND_AGAIN: Final = timedelta(days=7)
MAX_LINES: Final = 20
MAX_FOUND: Final = 100


@dataclass(frozen=True)
class Item:
    """One thing that waits. ``plain`` has no amount and no address; ``detailed`` is for users who chose
    it.
    """

    id: str
    plain: str
    detailed: str


def tell_waiting(db: Session, people: Select[int], now: datetime) -> None:
    """Queues a mail for people for whom something new waits, in its transaction; none for those who have one
    queued.
    """
    of_them = JobRow.kind == WAITING, JobRow.subject == cast(UserRow.id, String)
    has_one = exists().where(*of_them, IS_OPEN)
    recipients = select(UserRow.id, UserRow.waiting_mailed_at).where(
        UserRow.id.in_(people), UserRow.mails_waiting, ~has_one
    )
    by_time: dict[datetime, list[str]] = {}
    for user_id, last in db.execute(recipients):
        due = now + GATHER if last is None else max(now + GATHER, last + INTERVAL)
        by_time.setdefault(due, []).append(str(user_id))
    for due, subjects in by_time.items():
        enqueue_new(db, WAITING, subjects, due)


def remind_of_checks(db: Session, now: datetime) -> int:
    """Queues a mail to each holder of a key whose device has to sign again. A part of `Tidying`."""
    late = exists().where(KeyRow.user_id == UserRow.id, due(now)).correlate(UserRow)
    is_long_ago = UserRow.waiting_mailed_at.is_(None) | (UserRow.waiting_mailed_at <= now - REMIND_AGAIN)
    tell_waiting(db, select(UserRow.id).where(is_long_ago, late), now)
    return 0


class WaitingMail:
    """Handles those jobs."""

    def __init__(self, store: Store, clock: Clock, mailer: Mailer) -> None:
        self._store = store
        self._clock = clock
        self._mailer = mailer

    def __call__(self, task: Task) -> Finish:
        user_id = int(task.subject)
        with self._store.read() as db:
            user, items = db.get_one(UserRow, user_id), self._found(db, user_id)
        verdict = sent(self._mailer, _mail(user, items), task) if items else JobDone()
        if not items or not isinstance(verdict, JobDone):
            return lambda _db: verdict
        return lambda db: self._finish(db, user_id, {item.id for item in items})

    def _finish(self, db: Session, user_id: int, mailed: set[str]) -> JobDone | Again:
        """Keeps the job open where more has come while the mail was sent: that found this job open."""
        db.get_one(UserRow, user_id).waiting_mailed_at = self._clock()
        if any(item.id not in mailed for item in self._found(db, user_id)):
            return Again("More has come meanwhile.", INTERVAL)
        return JobDone()

    def _found(self, db: Session, user_id: int) -> Sequence[Item]:
        """What the person can sign or confirm, the oldest first; a change that cools off says until when."""
        if not db.get_one(UserRow, user_id).mails_waiting:
            return ()
        now = self._clock()
        return [*_proposals(db, user_id, now), *_changes(db, user_id, now), *_checks(db, user_id, now)]


def _mail(user: UserRow, items: Sequence[Item]) -> Mail:
    lines = [one_line(item.detailed if user.mails_amounts else item.plain) for item in items[:MAX_LINES]]
    if len(items) > MAX_LINES:
        lines.append("and more")
    listed = "\n".join(f"- {line}" for line in lines)
    one = len(items) == 1
    return Mail(
        user.email,
        "Something waits for you" if one else f"{len(items)} things wait for you",
        f"{'This waits' if one else 'These wait'} for your signature or confirmation:\n\n{listed}\n\n"
        "Look at them with your own programs: this mail has no link on purpose.\n"
        "To get no such mail any more, sign in to the console and look under Your account, Mails;\n"
        "without the console: custody mail --no-waiting\n",
    )


def _proposals(db: Session, user_id: int, now: datetime) -> list[Item]:
    has_seat = exists().where(
        VaultSignerRow.vault_id == ProposalRow.vault_id,
        VaultSignerRow.user_id == user_id,
        KeyRow.id == VaultSignerRow.key_id,
        KeyRow.revoked_reason.is_(None) | (KeyRow.revoked_reason != "lost"),
    )
    may_approve = approver(ProposalRow.workspace_id, user_id).correlate(ProposalRow).exists()
    query = (
        select(ProposalRow, VaultRow.name, WorkspaceRow.name, OrganisationRow.name)
        .join(VaultRow, VaultRow.id == ProposalRow.vault_id)
        .join(WorkspaceRow, WorkspaceRow.id == ProposalRow.workspace_id)
        .join(OrganisationRow, OrganisationRow.id == WorkspaceRow.organisation_id)
        .where(
            ProposalRow.status == ProposalStatus.PENDING.value,
            ProposalRow.replaced_by_id.is_(None),
            NOT_HELD,
            ProposalRow.profile_key_id.is_(None),
            ProposalRow.expires_at > now,
            VaultRow.frozen_at.is_(None),
            VaultRow.maker_may_approve | (ProposalRow.created_by != user_id),
            has_seat,
            may_approve,
            ~has_decided(user_id),
        )
        .order_by(ProposalRow.created_at, ProposalRow.id)
        .limit(MAX_FOUND)
    )
    return [_proposal(*row) for row in db.execute(query)]


_KINDS: Final = {
    TxType.SEND: "payment from",
    TxType.FORWARD: "forward into",
    TxType.DEPLOY: "token of",
    TxType.CALL: "call of a token of",
    TxType.PROOF: "proof of control of",
}


def _proposal(proposal: ProposalRow, vault: str, workspace: str, organisation: str) -> Item:
    where = f"vault {plain(vault)}, {plain(workspace)} of {plain(organisation)}"
    words = f"{_KINDS[TxType(proposal.tx_type)]} {where}: proposal {proposal.id}"
    paid = [
        f"{btc(amount)} BTC to {address}"
        for amount, address in zip(proposal.amounts_sats, proposal.recipients, strict=False)
    ]
    return Item(proposal.id, words, f"{words}, {', '.join(paid)}" if paid else words)


def _checks(db: Session, user_id: int, now: datetime) -> list[Item]:
    items = []
    for key in db.scalars(select(KeyRow).where(KeyRow.user_id == user_id, due(now)).order_by(KeyRow.id)):
        words = (
            f"check of the signing key {key.master_fingerprint}: its device last signed on "
            f"{day_words(key.last_signed_at)}. To show that it still does, connect it and run signerd "
            "register"
        )
        items.append(Item(f"key {key.id}", words, words))
    return items


def _changes(db: Session, user_id: int, now: datetime) -> list[Item]:
    query = (
        select(PendingChangeRow, OrganisationRow.name)
        .join(OrganisationRow, OrganisationRow.id == PendingChangeRow.organisation_id)
        .where(
            PendingChangeRow.status == ChangeStatus.PENDING.value,
            PendingChangeRow.expires_at > now,
            PendingChangeRow.asked_by != user_id,
            PendingChangeRow.organisation_id.in_(organisations_of(user_id)),
            exists().where(MembershipRow.user_id == user_id, confirms()).correlate(PendingChangeRow),
        )
        .order_by(PendingChangeRow.asked_at, PendingChangeRow.id)
        .limit(MAX_FOUND)
    )
    items = []
    for change, organisation in db.execute(query):
        call = change.path.rpartition("/")[2]
        later = f", not before {minute(change.not_before)}" if change.not_before > now else ""
        words = (
            f"change of {plain(organisation)}, {call}, asked for by {plain(change.asked_by_name)}: "
            f"change {change.id}{later}"
        )
        items.append(Item(change.id, words, words))
    return items
