"""What stands between a form and its act: what was typed is shown back, another person is needed, or the
second factor.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

from starlette.responses import Response

from custody.server.console.context import PageContext
from custody.server.errors import CustodyError, Invalid, StateConflict
from custody.server.sign_in import challenges
from custody.server.sign_in.passkeys import Assertion
from custody.server.sign_in.second_factor import second_factor_of

SECRETS: Final = frozenset({"password", "new_password", "again", "client_secret"})
# Not of the form itself: who sent it, and what the last page asked beside it; of that, the second factor's
# fields begin with STEP.
FRAME_FIELDS: Final = frozenset({"form_token", "key", "confirmed", "back", "another_code"})
STEP: Final = "step_"


Facts = Sequence[tuple[str, object]]


@dataclass(frozen=True)
class Review:
    """What is shown back before a form acts. ``facts``: names and values; a template's filters draw amounts
    and addresses. ``warning``: what a person should know before. ``pinned``: what the confirmation sends back
    of what was shown.
    """

    title: str
    facts: Facts
    action: str
    warning: str = ""
    template: str = "confirm.html"
    pinned: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class StepUpPrompt:
    """``method``: what has to be given. ``token``: which challenge a code answers; empty for a password.
    ``passkey`` and ``time``: as `challenges.beside_code` has them.
    """

    method: str
    token: str = field(default="", repr=False)
    passkey: str = ""
    time: str = ""


def shown_mark(*shown: object) -> tuple[str, str]:
    """Pins what a review showed: `require_as_shown` compares it with what would be done by then."""
    return "shown", sha256(repr(shown).encode()).hexdigest()


def require_as_shown(page: PageContext, *now: object) -> None:
    """Raises StateConflict."""
    if not _is_as_shown(page, *now):
        raise StateConflict("What you looked at would now do something else. Look at it again.")


def _is_as_shown(page: PageContext, *now: object) -> bool:
    name, mark = shown_mark(*now)
    return page.form.one(name) == mark


class ChangedMeanwhile(StateConflict):
    """What is in force is no longer what the form showed."""


def in_force_mark(page: PageContext, now: object) -> str:
    """For `pinned` of forms.html. What the person typed stays with what they typed it beside, however often
    the form comes back, until they are told that it was changed.
    """
    name, fresh = shown_mark(now)
    return fresh if isinstance(page.problem, ChangedMeanwhile) else page.form.one(name, fresh)


def require_in_force(
    page: PageContext, now: Mapping[str, Any] | None, wanted: Mapping[str, Any]
) -> tuple[str, str]:
    """What is in force now, pinned. Sent twice, what is wanted is in force already, and the answer is the
    first one's. Raises ChangedMeanwhile.
    """
    is_made = now is not None and now.items() <= wanted.items()
    if not is_made and not _is_as_shown(page, now):
        raise ChangedMeanwhile("It was changed while you looked at it. Look at what is in force now.")
    return shown_mark(now)


def page_before(
    page: PageContext, review_of: Callable[[PageContext], Review] | None, *, steps_up: bool
) -> Response | None:
    """The page that stands between a form and its act, where one does: what was typed, and the second factor.

    None where the person has confirmed and proven what is asked.
    """
    must_confirm = not page.form.ticked("confirmed")
    review = review_of(page) if review_of is not None and must_confirm else None
    if review is not None and (needed := page.second_person()):
        page.problem = needed
        return review_page(page, review)
    problem: CustodyError | None = None
    prompt = None
    if steps_up:
        try:
            _prove(page)
        except Invalid as error:
            problem = error
        with page.reading() as ctx:
            is_fresh = challenges.is_fresh(ctx)
        if not is_fresh:
            prompt = _step_up_prompt(page)
    if review is None and prompt is None:
        return None
    page.problem = problem
    if review is None:
        review = review_of(page) if review_of else Review("Confirm that it is you", (), "Go on")
    return review_page(page, review, prompt)


def review_page(page: PageContext, review: Review, prompt: StepUpPrompt | None = None) -> Response:
    """Where another person is needed, with the button that asks for one. Passwords stand in no page: they are
    typed again.
    """
    form = page.form
    anew = FRAME_FIELDS | {name for name, _ in review.pinned}
    names = [name for name in form.values if name not in anew and not name.startswith(STEP)]
    kept = [(name, value) for name in names if name not in SECRETS for value in form.every(name)]
    typed_again = [name for name in names if name in SECRETS]
    return page.render(review.template, review=review, kept=kept, prompt=prompt, typed_again=typed_again)


def _prove(page: PageContext) -> None:
    """Raises Invalid, RateLimited."""
    form, token = page.form, page.form.one("step_token")
    if assertion := form.one("step_assertion"):
        page.make_in_parts(challenges.prove_by_code(token, Assertion(assertion)))
    elif code := form.one("step_code"):
        page.make_in_parts(challenges.prove_by_code(token, code))
    # A form that asks for the password has asked for the proof of an account without a second factor.
    elif password := form.one("step_password") or form.one("password"):
        with page.reading() as ctx:
            takes_password = second_factor_of(ctx.db, page.caller.user_id) == "none"
        if takes_password:
            page.make_in_parts(challenges.prove_by_password(password))


def _step_up_prompt(page: PageContext) -> StepUpPrompt:
    """A challenge that is open stays: a mistyped code needs no second mail. The last try closes it."""
    form, session_id = page.form, page.caller.session_id
    method, token = form.one("step_method"), form.one("step_token")
    is_kept = bool(token) and not form.ticked("another_code") and method in {"email", "totp"}
    with page.reading() as ctx:
        is_open = is_kept and challenges.find_challenge(ctx, token, session_id) is not None
    if not is_open:
        awaited = page.make_in_parts(challenges.ask_for_proof())
        if awaited is None:
            return StepUpPrompt("password")
        method, token = awaited.method, awaited.token_2fa
    with page.reading() as ctx:
        return StepUpPrompt(method, token, *challenges.beside_code(ctx, token, session_id))
