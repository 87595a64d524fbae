"""The rule of the second person, and the changes that wait for one."""

from starlette.responses import Response

from custody.common.change_words import facts_of, nameless_field, open_words, title_of
from custody.schemas.changes import (
    CHANGES,
    CONFIRM_CHANGE,
    DECLINE_CHANGE,
    SECOND_PERSON_RULE,
    UPDATE_SECOND_PERSON_RULE,
    Change,
)
from custody.schemas.roles import ROLES, RoleDetails
from custody.schemas.webhooks import CREATE_WEBHOOK, UPDATE_WEBHOOK, WebhookWithSecret
from custody.server.console.context import PageContext
from custody.server.console.reviews import Review, require_as_shown, shown_mark
from custody.server.console.table import Row, form, template_view
from custody.server.errors import NotFound, StateConflict
from custody.server.second_person.changes import require_waiting


def _roles(page: PageContext) -> list[RoleDetails]:
    """Of the organisation's first workspace, whose owners set the rule."""
    own = (each for each in page.workspaces if each.organisation.org_id == page.workspace.organisation.org_id)
    first = min(own, key=lambda each: each.id)
    if not first.may("MANAGE_ROLE", "MANAGE_USERS", "MANAGE_WORKSPACE"):
        return []
    return page.read(ROLES, workspace_id=first.id)


changes = template_view(
    "changes/changes.html", changes=CHANGES, rule=SECOND_PERSON_RULE, roles=_roles,
    now=lambda page: page.services.tools.clock(),
)  # fmt: skip


def _change(page: PageContext) -> Change:
    """Raises NotFound, StateConflict."""
    change_id = page.form.one("change_id") or page.query("change_id")
    changes = page.read(CHANGES, change_id=change_id)
    if not changes:
        raise NotFound("There is no such change, or your role does not confirm it.")
    # Of one that is over, no names are read.
    require_waiting(changes[0].status)
    if nameless_field(changes[0]) is not None:
        raise StateConflict("It names something that no longer exists: decline it.")
    return changes[0]


def review_confirmation(page: PageContext) -> Review:
    change = _change(page)
    facts, opens = _facts(change), open_words(change, page.services.tools.clock())
    return Review(
        "Confirm this change?",
        facts,
        "Confirm",
        f"It {opens}. Confirmed, it takes effect at once, in the name of the member who asked.",
        pinned=(shown_mark(facts),),
    )


def _facts(change: Change) -> tuple[tuple[str, object], ...]:
    workspace, *said = facts_of(change)
    requester = ("Asked for by", change.asked_by_name)
    return (workspace, ("What would change", title_of(change)), *said, requester)


def confirm(page: PageContext) -> Response:
    # Beside it stands what is in force, which another change may have changed since.
    require_as_shown(page, _facts(_change(page)))
    applied = page.act(CONFIRM_CHANGE, **page.typed(CONFIRM_CHANGE))
    if applied.change.path in {CREATE_WEBHOOK.path, UPDATE_WEBHOOK.path}:
        shown = WebhookWithSecret.model_validate(applied.answer)
        if shown.secret is not None:
            return page.render("webhooks/secret.html", shown=shown)
    return page.redirect(f"{page.workspace.path}/changes", "The change is made.")


def _warning(page: PageContext) -> str:
    if page.form.ticked("is_on"):
        return (
            "From then on no member alone changes members, roles, limits, vaults' controls, the address "
            "book, webhooks, programs, the identity provider or this rule, or marks another's key as lost."
        )
    return "Each member then changes policy alone."


_NO_RULE = {"confirming_role_id": None, "cooling_off_hours": 0}
_HERE = "/w/{workspace_id:int}/changes"
ROWS = (
    Row("GET", _HERE, changes),
    Row(
        "POST", _HERE + "/confirm", confirm, again=changes, review=review_confirmation, steps_up=True,
        acts=(CONFIRM_CHANGE,),
    ),
    form(_HERE + "/decline", DECLINE_CHANGE, changes, "The change is declined.", optional=("reason",)),
    form(
        _HERE + "/rule", UPDATE_SECOND_PERSON_RULE, changes,
        lambda rule: f"The rule is {'on' if rule.is_on else 'off'}.", asks="Change the rule",
        warns=_warning, given=lambda page: {} if page.form.ticked("is_on") else _NO_RULE,
    ),
)  # fmt: skip
