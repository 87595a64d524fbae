"""Mails to people for whom something waits: a job for each person, recorded with what waits, and one mail of
all that waits when it is sent.

What is signed or decided by then is not mailed. At least once, as every mail: a worker that dies between
sending and recording causes a second one, never none.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Select, String, cast, exists, select
from sqlalchemy.orm import Session

from custody.server.domain.errors import MailRefused, MailUnavailable
from custody.server.domain.ports import Clock
from custody.server.service.jobs.outbox import Again, Dead, Done, Finish, Task, enqueue_new
from custody.server.service.mail.jobs import MAX_ATTEMPTS, WAITING, one_line
from custody.server.service.mail.mailer import Mail, Mailer
from custody.server.store import Store
from custody.server.store.models import Job, User

# What is asked for one after the other comes in one mail.
GATHER: Final = timedelta(minutes=2)
# At most one mail in it to each person, however much comes.
INTERVAL: Final = timedelta(minutes=30)
MAX_LINES: Final = 20


@dataclass(frozen=True)
class Item:
    """One thing that waits. ``plain`` has no amount and no address; ``detailed`` is for who wants them."""

    id: str
    plain: str
    detailed: str


Find = Callable[[Session, int, datetime], Sequence[Item]]


def tell_waiting(db: Session, people: Select[int], now: datetime) -> None:
    """Something new waits for them: in the transaction of what it is. Who is about to get a mail gets no
    second one.
    """
    has_one = exists().where(
        Job.kind == WAITING,
        Job.subject == cast(User.id, String),
        Job.done_at.is_(None),
        Job.dead_at.is_(None),
    )
    told = select(User.id, User.waiting_mailed_at).where(User.id.in_(people), User.mails_waiting, ~has_one)
    by_time: dict[datetime, list[str]] = {}
    for user_id, last in db.execute(told):
        due = now + GATHER if last is None else max(now + GATHER, last + INTERVAL)
        by_time.setdefault(due, []).append(str(user_id))
    for due, subjects in by_time.items():
        enqueue_new(db, WAITING, subjects, due)


class WaitingMail:
    """Handles those jobs. ``find``: what waits for a person now."""

    def __init__(self, store: Store, clock: Clock, mailer: Mailer, find: Find) -> None:
        self._store = store
        self._clock = clock
        self._mailer = mailer
        self._find = find

    def __call__(self, task: Task) -> Finish:
        user_id = int(task.subject)
        with self._store.read() as db:
            user, items = db.get_one(User, user_id), self._found(db, user_id)
        if not items:
            return lambda _db: Done()
        try:
            self._mailer.send(_mail(user, items))
        except MailRefused as error:
            refused = Dead(error.detail)
            return lambda _db: refused
        except MailUnavailable as error:
            later = Dead(error.detail) if task.attempts >= MAX_ATTEMPTS else Again(error.detail)
            return lambda _db: later
        return lambda db: self._finish(db, user_id, {item.id for item in items})

    def _finish(self, db: Session, user_id: int, mailed: set[str]) -> Done | Again:
        """What came while the mail was sent found this job open: it has the next one."""
        db.get_one(User, user_id).waiting_mailed_at = self._clock()
        if any(item.id not in mailed for item in self._found(db, user_id)):
            return Again("More has come meanwhile.", INTERVAL)
        return Done()

    def _found(self, db: Session, user_id: int) -> Sequence[Item]:
        if not db.get_one(User, user_id).mails_waiting:
            return ()
        return self._find(db, user_id, self._clock())


def _mail(user: User, items: Sequence[Item]) -> Mail:
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
