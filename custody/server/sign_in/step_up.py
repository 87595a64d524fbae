"""The second factor once more, before a person changes who may do what; and the passkeys that they then add
to their account, or remove.
"""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from custody.server.calls import Ctx, In, Steps
from custody.server.errors import Invalid, StateConflict
from custody.server.mail.jobs import Template, queue_mail
from custody.server.rules.audit import Category, Event
from custody.server.sign_in.challenges import (
    CodeAwaited,
    ask_for_code,
    find_challenge,
    judge_code,
    offer_challenge,
    offered_challenge,
)
from custody.server.sign_in.passkeys import Assertion
from custody.server.sign_in.passwords import require_password, require_still
from custody.server.sign_in.second_factor import second_factor_of, set_factor
from custody.server.store.models import CredentialRow, SignInSessionRow, UserRow

STEPPED_UP = Event("STEPPED_UP", "{proof}", category=Category.SIGN_IN)
REFUSED = Event("STEP_UP_REFUSED", "", category=Category.SIGN_IN)
PASSKEY_ADDED = Event("PASSKEY_ADDED", "{name}", category=Category.SIGN_IN)
PASSKEY_REMOVED = Event("PASSKEY_REMOVED", "{name}", category=Category.SIGN_IN)
# So long a proof counts, the code of the sign-in among them: a treasurer who changes five limits gives one.
STEP_UP_LIFETIME: Final = timedelta(minutes=10)


def is_fresh(ctx: Ctx) -> bool:
    """Whether this session gave its proof lately."""
    proven_at = ctx.db.get_one(SignInSessionRow, ctx.caller.session_id).stepped_up_at
    return proven_at is not None and proven_at > ctx.now - STEP_UP_LIFETIME


def ask_for_proof() -> Steps[CodeAwaited | None]:
    """Mails a code where the account has mailed codes. None for an account without a second factor:
    it gives its password.

    Raises RateLimited, MailUnavailable, MailRefused.
    """
    ctx = yield In.WRITE
    if second_factor_of(ctx.db, ctx.caller.user_id) == "none":
        return None
    return (yield from ask_for_code(ctx, ctx.caller.user_id, session_id=ctx.caller.session_id))


def prove_by_code(token: str, given: str | Assertion) -> Steps[None]:
    """Raises Invalid, with one text for a wrong, used, expired or foreign code, and RateLimited."""
    ctx = yield In.WRITE
    challenge = find_challenge(ctx, token, ctx.caller.session_id)
    proof = None if challenge is None else judge_code(ctx, challenge, token, given)
    if proof is not None:
        _note(ctx, proof)
        return
    ctx.event(REFUSED)
    yield In.NOTHING
    sentence = "The code is wrong, was used, or has expired."
    raise Invalid.at("/code", sentence)


def prove_by_password(password: str) -> Steps[None]:
    """For an account without a second factor. Raises Invalid, RateLimited."""
    known = yield from require_password(password)
    ctx = yield In.WRITE
    require_still(ctx, known)
    if second_factor_of(ctx.db, ctx.caller.user_id) != "none":
        raise Invalid("This account has a second factor: give its code.")
    _note(ctx, "with the password alone")


def _note(ctx: Ctx, proof: str) -> None:
    ctx.db.get_one(SignInSessionRow, ctx.caller.session_id).stepped_up_at = ctx.now
    ctx.event(STEPPED_UP, proof=proof)


@dataclass(frozen=True)
class PasskeyOffer:
    """``options``: for the browser, as JSON. ``token``: identifies the challenge."""

    options: str
    token: str = field(repr=False)


def offer_passkey(ctx: Ctx) -> PasskeyOffer:
    """Raises StateConflict."""
    token, challenge = offer_challenge(ctx)
    user = ctx.db.get_one(UserRow, ctx.caller.user_id)
    return PasskeyOffer(ctx.tools.passkeys.creation(ctx.db, user, challenge), token)


def add_passkey(ctx: Ctx, token: str, name: str, given: Assertion) -> None:
    """From then on a sign-in asks for a second factor. A session alone cannot add a passkey: its user must
    have proven the second factor recently. Raises Invalid, RateLimited, StateConflict.
    """
    db, caller = ctx.db, ctx.caller
    if not is_fresh(ctx):
        raise StateConflict("Show first that it is you, and add the passkey then.")
    challenge = offered_challenge(ctx, token)
    if challenge is None:
        raise Invalid("The request for a passkey has expired: try it again.")
    ctx.tools.passkeys.add(db, db.get_one(UserRow, caller.user_id), name, challenge.token_hash, given)
    challenge.closed_at = ctx.now
    credential = db.get_one(CredentialRow, caller.user_id)
    if credential.second_factor == "none":
        set_factor(db, credential, "email", ctx.now, keep_session=caller.session_id)
    _mail_change(ctx, "a passkey, or what it asked for before")
    ctx.event(PASSKEY_ADDED, name=name)


def remove_passkey(ctx: Ctx, passkey_id: int) -> None:
    """Raises NotFound."""
    name = ctx.tools.passkeys.remove(ctx.db, ctx.caller.user_id, passkey_id)
    _mail_change(ctx, "what it asked for before, without one passkey")
    ctx.event(PASSKEY_REMOVED, name=name)


def _mail_change(ctx: Ctx, method: str) -> None:
    queue_mail(ctx.db, Template.SECOND_FACTOR_CHANGED, ctx.caller.name, {"method": method}, now=ctx.now)
