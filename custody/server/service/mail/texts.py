"""Every text that goes by mail, as data; ``{name}`` stands for a value. A new mail is a row of ``TEXTS``."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from string import Formatter

from custody.server.service.mail.mailer import Mail


class Template(StrEnum):
    CODE = "code"
    WELCOME = "welcome"
    ALREADY_REGISTERED = "already-registered"
    PASSWORD_RESET = "password-reset"  # noqa: S105 - a name
    PASSWORD_CHANGED = "password-changed"  # noqa: S105 - a name
    SECOND_FACTOR_CHANGED = "second-factor-changed"
    SECOND_FACTOR_FAILED = "second-factor-failed"
    RECOVERY_CODE_USED = "recovery-code-used"
    INVITATION = "invitation"
    ONBOARDING_APPROVED = "onboarding-approved"
    ONBOARDING_REJECTED = "onboarding-rejected"
    WEBHOOK_DISABLED = "webhook-disabled"


# Second factors, as mails and the audit log call them.
METHODS: Mapping[str, str] = {
    "none": "the password alone",
    "email": "e-mailed codes",
    "totp": "an authenticator's codes",
}


@dataclass(frozen=True)
class Text:
    """``link`` goes below the text, behind the platform's own address, where the operator has named one.

    ``made``: values that are secrets. They are made when the mail is sent, and never wait in the outbox.
    """

    subject: str
    text: str
    link: str | None = None
    made: frozenset[str] = field(default=frozenset())

    @property
    def values(self) -> frozenset[str]:
        """Every name that the texts ask for."""
        parsed = [*Formatter().parse(self.subject), *Formatter().parse(self.text + (self.link or ""))]
        return frozenset(name for _, name, _, _ in parsed if name)

    @property
    def queued(self) -> frozenset[str]:
        """The names whose values wait in the outbox."""
        return self.values - self.made

    def fill(self, to: str, values: Mapping[str, str], public_url: str | None) -> Mail:
        text = self.text.format_map(values)
        if self.link is not None and public_url is not None:
            text += f"\n{public_url.rstrip('/')}{self.link.format_map(values)}\n"
        return Mail(to, self.subject.format_map(values), text)


TEXTS: Mapping[Template, Text] = {
    Template.CODE: Text(
        "Your sign-in code",
        "Your sign-in code is {code}\n\n"
        "It is good for {minutes} minutes and for one sign-in. If you are not signing in, change your password:\n"
        "somebody knows it.\n",
        made=frozenset({"code"}),
    ),
    Template.WELCOME: Text(
        "Your custody account",
        "Your account is ready. An administrator can now add you to a workspace.\n",
    ),
    Template.ALREADY_REGISTERED: Text(
        "You already have an account",
        "Somebody tried to register an account with this address. You have one already; nothing was changed.\n",
    ),
    Template.PASSWORD_RESET: Text(
        "Choose a new password",
        "Somebody, probably you, asked for a new password for this account. To choose one, use this token:\n\n"
        "{token}\n\n"
        "It is good for {minutes} minutes and once. If you did not ask, do nothing: your password stays.\n",
        # Behind a # it is sent to no server, and so stays out of logs (RFC 3986, section 3.5).
        link="/reset-password#token={token}",
        made=frozenset({"token", "minutes"}),
    ),
    Template.PASSWORD_CHANGED: Text(
        "Your password was changed",
        "The password of your account was changed, and your other sessions were ended.\n\n"
        "If this was not you, ask for a password reset at once and tell your administrator.\n",
    ),
    Template.SECOND_FACTOR_CHANGED: Text(
        "Your second factor was changed",
        "Signing in to your account now asks for: {method}.\n\n"
        "If this was not you, change your password at once and tell your administrator.\n",
    ),
    Template.SECOND_FACTOR_FAILED: Text(
        "Somebody who has your password was stopped",
        "Somebody signed in with your password and then failed to give the code that comes after it.\n\n"
        "If this was not you, change your password at once: somebody knows it.\n",
    ),
    Template.RECOVERY_CODE_USED: Text(
        "A recovery code was used",
        "Somebody signed in to your account with one of its recovery codes; {left} are left.\n\n"
        "If this was not you, change your password at once and enrol your authenticator again.\n",
    ),
    Template.INVITATION: Text(
        "You are invited to {organisation}",
        "{inviter} invites you to the workspace {workspace} of {organisation}, as {role}.\n\n"
        "Sign in with this address and accept or decline the invitation {invite_id}; if you have no account yet,\n"
        "register one with this address first. The invitation ends on {expires_at}.\n",
        link="/invitations/{invite_id}",
    ),
    Template.ONBOARDING_APPROVED: Text(
        "Your organisation is ready",
        "Your request was approved: {organisation} exists, with its first workspace, and you are its administrator.\n"
        "Sign in with this address, register your signing device, and invite the others.\n\n"
        "Note of the reviewer: {note}\n",
    ),
    Template.ONBOARDING_REJECTED: Text(
        "Your request was not approved",
        "Your request for {organisation} was not approved.\n\nNote of the reviewer: {note}\n",
    ),
    Template.WEBHOOK_DISABLED: Text(
        "A webhook of {workspace} was disabled",
        "The webhook to {host} that you made in the workspace {workspace} is told nothing more: the receiver failed for\n"
        "days, or said that it is gone.\n\n"
        "Look into its deliveries, repair the receiver, and enable the webhook again.\n",
    ),
}
