"""Mail through the outbox: retried until a server accepts it, without secrets while it waits, in the
platform's own words alone.
"""

import pytest
from sqlalchemy import select

from custody.server.errors import MailRefused, MailUnavailable
from custody.server.jobs.outbox import Outbox
from custody.server.mail.jobs import (
    MAIL,
    MAX_ATTEMPTS,
    MAX_VALUE_LENGTH,
    MailJobs,
    Template,
    queue_mail,
)
from custody.server.mail.mailer import CannotMail, Mail
from custody.server.store.models import JobRow

TO = "a@example.org"
INVITATION = {
    "organisation": "Acme",
    "workspace": "Main",
    "role": "Signer",
    "inviter": "b@example.org",
    "invite_id": "0123456789abcdef",
    "expires_at": "2026-03-08",
}


class Post:
    """Fails a given number of times, then accepts everything."""

    def __init__(self, *failures):
        self.failures = list(failures)
        self.sent: list[Mail] = []

    def send(self, mail):
        if self.failures:
            raise self.failures.pop(0)
        self.sent.append(mail)


def queue(store, clock, template=Template.INVITATION, to=TO, **changes):
    values = INVITATION if template is Template.INVITATION else {}
    with store.write() as db:
        queue_mail(db, template, to, values | changes, now=clock())


def worker(store, clock, post, makers=(), public_url="https://custody.example.org/"):
    return Outbox(store, clock, "one", {MAIL: MailJobs(post, dict(makers), public_url)})


def only_job(store):
    with store.read() as db:
        return db.scalars(select(JobRow)).one()


def test_a_mail_follows_the_transaction_that_queued_it(store, clock):
    post = Post()

    def fail():
        with store.write() as db:
            queue_mail(db, Template.WELCOME, TO, {}, now=clock())
            raise RuntimeError("the rest failed")

    with pytest.raises(RuntimeError):
        fail()
    assert worker(store, clock, post).run_due() == 0
    queue(store, clock)
    assert worker(store, clock, post).run_due() == 1
    (mail,) = post.sent
    assert (mail.to, mail.subject) == (TO, "You are invited to Acme")
    assert "b@ example. org invites you to the workspace Main of Acme, as Signer." in mail.text
    assert mail.text.endswith("\nhttps://custody.example.org/invitations/0123456789abcdef\n")


def test_is_tried_again_until_the_mail_server_takes_it(store, clock):
    post = Post(MailUnavailable("away"), MailUnavailable("away"))
    queue(store, clock)
    one = worker(store, clock, post)
    assert one.run_due() == 1
    assert one.run_due() == 0
    clock.advance(seconds=1)
    assert one.run_due() == 1
    clock.advance(seconds=1)
    assert one.run_due() == 0
    clock.advance(seconds=1)
    assert one.run_due() == 1
    assert len(post.sent) == 1
    assert only_job(store).done_at is not None


@pytest.mark.parametrize(
    ("failure", "left", "said"),
    [
        (MailUnavailable("away"), 1, "away"),
        # Refused for good: at once.
        (MailRefused("no such mailbox"), MAX_ATTEMPTS, "no such mailbox"),
        # An error that was not foreseen.
        (KeyError("organisation"), 1, "The mail could not be written (KeyError)."),
    ],
)
def test_is_given_up_after_half_a_day(store, clock, failure, left, said):
    queue(store, clock)
    one = worker(store, clock, Post(failure, failure))
    if left == 1:
        with store.write() as db:
            db.scalars(select(JobRow)).one().attempts = MAX_ATTEMPTS - 2
        one.run_due()
        assert only_job(store).dead_at is None
        clock.advance(minutes=1)
    one.run_due()
    job = only_job(store)
    assert (job.last_error, job.dead_at is not None) == (said, True)


def test_the_same_mail_waits_once(store, clock):
    post = Post()
    for _ in range(3):
        queue(store, clock)
    queue(store, clock, to="c@example.org")
    assert worker(store, clock, post).run_due() == 2


def test_a_secret_is_made_when_the_mail_is_sent_and_never_waits(store, clock):
    """P49."""
    made = iter(["first", "second"])
    post = Post(MailUnavailable("away"))
    queue(store, clock, Template.PASSWORD_RESET)
    one = worker(
        store, clock, post, {Template.PASSWORD_RESET: lambda _to: {"token": next(made), "minutes": "60"}}
    )
    one.run_due()
    clock.advance(seconds=1)
    one.run_due()
    assert "second" in post.sent[0].text
    assert only_job(store).payload == {"template": "PASSWORD_RESET", "to": TO, "values": {}}
    # One that is no longer needed is not sent.
    queue(store, clock, Template.PASSWORD_RESET)
    assert worker(store, clock, post, {Template.PASSWORD_RESET: lambda _to: None}).run_due() == 1
    assert len(post.sent) == 1


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Acme\r\nBcc: everybody@example.org", "Acme Bcc: everybody@ example. org"),
        ("Acme" + 60 * "\u3000\u2800" + "Press here", "Acme Press here"),
        ("https://evil.example/login", "https: / / evil. example/ login"),
        ("evil\u200b.example", "evil . example"),
        ("evil\uff0eexample\u3002org", "evil\uff0e example\u3002 org"),
        ("mailto:eve@evil.example", "mailto: eve@ evil. example"),
        ("A/B Ltd., desk 9:30", "A/ B Ltd., desk 9:30"),
        ("Acme\u2028You won", "Acme You won"),
        ("Acme \u202egro.live", "Acme gro. live"),
        ("Coldcard 5.6.1 at 10.0.0.1", "Coldcard 5.6.1 at 10. 0. 0. 1"),
        ("{code}", "{code}"),
        ("x" * 1_000, "x" * MAX_VALUE_LENGTH),
    ],
)
def test_a_name_writes_no_line_of_a_mail(store, clock, name, shown):
    """P50."""
    post = Post()
    queue(store, clock, organisation=name)
    worker(store, clock, post).run_due()
    (mail,) = post.sent
    assert mail.subject == f"You are invited to {shown}"
    plain = Template.INVITATION.value.fill(TO, INVITATION, "https://custody.example.org")
    assert len(mail.text.splitlines()) == len(plain.text.splitlines())


@pytest.mark.parametrize("values", [{}, {**INVITATION, "code": "123456"}])
def test_a_mail_takes_its_own_values_and_no_other(store, clock, values):
    with store.write() as db, pytest.raises(ValueError, match="takes"):
        queue_mail(db, Template.INVITATION, TO, values, now=clock())


def test_links_lead_to_https_or_to_this_machine_or_nowhere():
    for url in (
        "custody.example.org",
        "http://custody.example.org",
        "javascript:alert(1)",
        "https://",
        "https://custody.example.org/?a=b",
        "https://custody.example.org/#a",
    ):
        with pytest.raises(CannotMail, match="is not a URL for links"):
            MailJobs(Post(), {}, url)
    for url in ("https://custody.example.org/app/", "http://127.0.0.1:8080", None):
        MailJobs(Post(), {}, url)
