"""Signed advisories: submitting a list, and the vaults that one exposes. Evacuations: which keys are exposed,
the plan, its start by two people, and how far it is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.responses import Response

from custody.advisory_report import of_advisory, steps, words
from custody.pages.figures import amount
from custody.pages.rendering import Live
from custody.schemas.advisories import AdvisoryPublisher, VaultExposure
from custody.schemas.evacuations import Evacuation, EvacuationPlan, EvacuationSigner, PlannedVault, VaultKey
from custody.server.console.table import Review, Row
from custody.server.console.vaults import CHAIN_SECONDS, VIEWERS
from custody.server.console.visit import Visit, number_of
from custody.server.domain.errors import Invalid, StateConflict
from custody.server.domain.limits import in_btc
from custody.text import plain

PAGE = 100
SEVERITY_WORDS = {"stop-using": "stop using the device", "warn": "a warning"}


def advisories(visit: Visit) -> Response:
    publishers: list[AdvisoryPublisher] = visit.get("advisories")
    known = {each.advisory_id: each for one in publishers for each in one.advisories}
    text = visit.query("advisory")
    chosen = known.get(int(text)) if text.isascii() and text.isdecimal() and len(text) < 10 else None
    shown: dict[str, Any] = {"exposures": [], "reports": [], "total": 0}
    found: list[VaultExposure] = []
    if chosen is not None and visit.here.may(*VIEWERS):
        found = visit.get("exposures", workspace_id=visit.here.id, advisory_id=chosen.advisory_id)
        shown |= {"exposures": found[:PAGE], "total": len(found)}
    if chosen is not None and visit.here.may("MANAGE_WORKSPACE"):
        done = of_advisory(chosen, found, visit.get("evacuations", workspace_id=visit.here.id))
        shown["reports"] = [(each, steps(chosen, each)) for each in done]
    return visit.page(
        "advisories/advisories.html",
        here="advisories",
        publishers=publishers,
        chosen=chosen,
        severities=SEVERITY_WORDS,
        time_words=words,
        **shown,
    )


def take(visit: Visit) -> Response:
    # A browser sends CR LF for a line's end.
    signed = visit.form.one("list").strip()
    taken = visit.post("take-advisories", workspace_id=visit.here.id, list=signed)
    return visit.go(f"{visit.here.path}/advisories", f"The list with the serial {taken.serial} is taken.")


_ADVISORIES = "/w/{workspace_id:int}/advisories"


PRIORITIES: Final = (("high", "High"), ("medium", "Medium"), ("low", "Low"))

# Of a plan's vaults: what each would move is worked out for those that are shown.
PLAN_PAGE: Final = 20


def evacuations(visit: Visit) -> Response:
    return visit.page(
        "evacuations/evacuations.html", here="vaults", live_progress=_live(visit), **_progress(visit)
    )


def progress(visit: Visit) -> Response:
    return visit.part(_live(visit), **_progress(visit))


def _live(visit: Visit) -> Live:
    path = f"{visit.here.path}/evacuations/progress"
    return Live("progress", "evacuations/progress.html", path, CHAIN_SECONDS)


def _progress(visit: Visit) -> dict[str, Any]:
    found: list[Evacuation] = visit.get("evacuations", workspace_id=visit.here.id)
    return {"evacuations": found}


def choose(visit: Visit) -> Response:
    """The signers' keys, of which some are ticked; and a page of the plan where some are."""
    query = visit.request.query_params
    asked: dict[str, Any] = {
        "exposed_keys": list(dict.fromkeys(query.getlist("exposed"))),
        "advisory_id": visit.place_in_list("advisory"),
        "substitutes": _substitutes(query.getlist("substitute")),
        "priority": visit.query("priority", "high"),
    }
    if asked["advisory_id"] is None:
        asked["substitutes"] = {k: v for k, v in asked["substitutes"].items() if k in asked["exposed_keys"]}
    plan = None
    if asked["exposed_keys"] or asked["advisory_id"] is not None:
        plan = _plan(visit, asked, first=visit.place_in_list("first") or 0)
    keys: list[VaultKey] = visit.get("vault-keys", workspace_id=visit.here.id)
    kept = [(name, value) for name, value in query.multi_items() if name != "first"]
    return visit.page(
        "evacuations/plan.html", here="vaults", plan=plan, asked=asked, keys=keys, priorities=PRIORITIES,
        pages=None if plan is None else pages_of(plan, urlencode(kept)),
    )  # fmt: skip


def _substitutes(texts: Sequence[str]) -> dict[str, int]:
    """Each ``KEY:USER``; without a user the platform proposes somebody. Raises Invalid."""
    found: dict[str, int] = {}
    for text in filter(None, texts):
        key, _, user = text.partition(":")
        number = number_of(user)
        if number is None:
            raise Invalid.at("/substitutes", "Choose each substitute from its list.")
        found[key] = number
    return found


@dataclass(frozen=True)
class Pages:
    """Where the others of a plan's pages are. ``words``: which of its vaults this one has."""

    words: str
    before: str | None
    after: str | None


def pages_of(plan: EvacuationPlan, query: str) -> Pages:
    first, last = plan.first, plan.first + len(plan.vaults)
    return Pages(
        f"Vaults {first + 1} to {last} of {plan.planned_vaults}",
        f"{query}&first={max(0, first - PLAN_PAGE)}" if first else None,
        f"{query}&first={last}" if last < plan.planned_vaults else None,
    )


def _plan(visit: Visit, wanted: Mapping[str, Any], first: int = 0) -> EvacuationPlan:
    plan: EvacuationPlan = visit.post(
        "preview-evacuation", workspace_id=visit.here.id, first=first, count=PLAN_PAGE, **wanted
    )
    return plan


def _asked(visit: Visit) -> dict[str, Any]:
    form = visit.form
    # In one field each: a form has fewer fields than a plan takes keys.
    return {
        "exposed_keys": list(dict.fromkeys(form.one("exposed").split())),
        "advisory_id": visit.number("advisory") if form.one("advisory") else None,
        "substitutes": _substitutes(form.one("substitute").split()),
        "priority": form.one("priority"),
    }


def plan_facts(plan: EvacuationPlan, pages: str) -> list[tuple[str, object]]:
    """``pages``: the path of the page that shows it in parts."""
    facts: list[tuple[str, object]] = [
        ("Plan", f"{plan.plan_hash[:8]}, fee {plan.fee_rate} sat/vB"),
        ("Vaults that are moved", f"{plan.moved_vaults} of {plan.planned_vaults}"),
        ("They hold", amount(plan.moved_sats)),
        *((("New in quorums", _lines(plan.new_keys)),) if plan.new_keys else ()),
        *((each.vault_name, _words(each)) for each in plan.vaults),
    ]
    last = plan.first + len(plan.vaults)
    if last < plan.planned_vaults:
        words = f"The vaults {last + 1} to {plan.planned_vaults} of this plan, in a window of their own"
        link = Markup('<a href="{}" target="_blank" rel="noopener">{}</a>').format(pages, words)
        facts.append(("And", link))
    return facts


def _lines(signers: Sequence[VaultKey | EvacuationSigner]) -> Markup:
    """One a line: members choose their names, and one may be written like several."""
    items = (Markup("<li>{}</li>").format(plain(signer.in_words())) for signer in signers)
    return Markup("<ul>{}</ul>").format(Markup("").join(items))


def _words(each: PlannedVault) -> str | Markup:
    if each.cannot is not None:
        return f"is not moved: {each.cannot}"
    moves = f"{in_btc(each.amount_sats)} BTC, fee {each.fee_sats} sats, to {each.replacement_name}"
    said = " ".join((f"{each.vault_id}: {moves}.", *each.notes, f"{each.m} of these sign:"))
    return Markup("{}{}").format(plain(said), _lines(each.signers))


def review_start(visit: Visit) -> Review:
    asked = _asked(visit)
    plan = _plan(visit, asked)
    if plan.plan_hash != visit.form.one("plan_hash"):
        raise StateConflict("The plan has changed since: look at the new one.")
    warning = (
        "A second person has to confirm it. Then the vaults are made, proposals without a signature are "
        "cancelled, and the sweeps wait for the signers."
    )
    query = [("exposed", key) for key in asked["exposed_keys"]]
    query += [("substitute", f"{key}:{user}") for key, user in asked["substitutes"].items()]
    query += [] if asked["advisory_id"] is None else [("advisory", asked["advisory_id"])]
    path = f"{visit.here.path}/evacuations/plan?{urlencode(query)}&priority={plan.priority}&first={PLAN_PAGE}"
    return Review("Evacuate these vaults?", plan_facts(plan, path), "Go on", warning)


def start(visit: Visit) -> Response:
    visit.post(
        "start-evacuation",
        workspace_id=visit.here.id,
        **_asked(visit),
        plan_hash=visit.form.one("plan_hash"),
    )
    return visit.go(f"{visit.here.path}/evacuations", "The evacuation is started.")


def again(visit: Visit) -> Response:
    form = visit.form
    visit.post(
        "sweep-again",
        workspace_id=visit.here.id,
        evacuation_id=form.one("evacuation_id"),
        vault_id=form.one("vault_id"),
    )
    return visit.go(f"{visit.here.path}/evacuations", "The sweep is asked for.")


_HERE = "/w/{workspace_id:int}/evacuations"


ROWS = (
    Row("GET", _ADVISORIES, advisories),
    Row("POST", _ADVISORIES, take, again=advisories),
    Row("GET", _HERE, evacuations),
    Row("GET", _HERE + "/progress", progress),
    Row("GET", _HERE + "/plan", choose),
    Row("POST", _HERE + "/start", start, again=evacuations, review=review_start),
    Row("POST", _HERE + "/again", again, again=evacuations),
)
