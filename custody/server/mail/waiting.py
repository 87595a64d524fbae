"""Mails to people for whom something waits: one job for each person, and one mail with all that waits when it
is sent.

What is signed or decided by then is not in it. At least once, like every mail.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Select, String, cast, exists, select
from sqlalchemy.orm import Session

from custody.server.errors import MailRefused, MailUnavailable
from custody.server.jobs.outbox import Again, Dead, Finish, JobDone, Task, enqueue_new
from custody.server.mail.jobs import MAX_ATTEMPTS, WAITING, one_line
from custody.server.mail.mailer import Mail, Mailer
from custody.server.rules.ports import Clock
from custody.server.store import Store
from custody.server.store.models import JobRow, UserRow

# Requests that follow each other within this time share a mail.
GATHER: Final = timedelta(minutes=2)
# At most one mail to each person in this time.
INTERVAL: Final = timedelta(minutes=30)
MAX_LINES: Final = 20


@dataclass(frozen=True)
class Item:
    """One thing that waits. ``plain`` has no amount and no address; ``detailed`` is for users who chose
    it.
    """

    id: str
    plain: str
    detailed: str


Find = Callable[[Session, int, datetime], Sequence[Item]]


def tell_waiting(db: Session, people: Select[int], now: datetime) -> None:
    """Queues a mail for people for whom something new waits, in its transaction; none for those who have one
    queued.
    """
    has_one = exists().where(
        JobRow.kind == WAITING,
        JobRow.subject == cast(UserRow.id, String),
        JobRow.done_at.is_(None),
        JobRow.dead_at.is_(None),
    )
    told = select(UserRow.id, UserRow.waiting_mailed_at).where(
        UserRow.id.in_(people), UserRow.mails_waiting, ~has_one
    )
    by_time: dict[datetime, list[str]] = {}
    for user_id, last in db.execute(told):
        due = now + GATHER if last is None else max(now + GATHER, last + INTERVAL)
        by_time.setdefault(due, []).append(str(user_id))
    for due, subjects in by_time.items():
        enqueue_new(db, WAITING, subjects, due)


class WaitingMail:
    """Handles those jobs. ``find`` returns what waits for a person now."""

    def __init__(self, store: Store, clock: Clock, mailer: Mailer, find: Find) -> None:
        self._store = store
        self._clock = clock
        self._mailer = mailer
        self._find = find

    def __call__(self, task: Task) -> Finish:
        user_id = int(task.subject)
        with self._store.read() as db:
            user, items = db.get_one(UserRow, user_id), self._found(db, user_id)
        if not items:
            return lambda _db: JobDone()
        try:
            self._mailer.send(_mail(user, items))
        except MailRefused as error:
            refused = Dead(error.detail)
            return lambda _db: refused
        except MailUnavailable as error:
            later = Dead(error.detail) if task.attempts >= MAX_ATTEMPTS else Again(error.detail)
            return lambda _db: later
        return lambda db: self._finish(db, user_id, {item.id for item in items})

    def _finish(self, db: Session, user_id: int, mailed: set[str]) -> JobDone | Again:
        """Keeps the job open where more has come while the mail was sent: that found this job open."""
        db.get_one(UserRow, user_id).waiting_mailed_at = self._clock()
        if any(item.id not in mailed for item in self._found(db, user_id)):
            return Again("More has come meanwhile.", INTERVAL)
        return JobDone()

    def _found(self, db: Session, user_id: int) -> Sequence[Item]:
        if not db.get_one(UserRow, user_id).mails_waiting:
            return ()
        return self._find(db, user_id, self._clock())


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
