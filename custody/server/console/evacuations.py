"""Evacuations: which keys are exposed, the plan, its start by two people, and how far it is."""

from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from custody.pages.rendering import Live
from custody.schemas.evacuations import Evacuation, EvacuationPlan, PlannedVault
from custody.schemas.vaults import Vault
from custody.server.console.table import Review, Row
from custody.server.console.vaults import fingerprints, names_of
from custody.server.console.visit import Visit
from custody.server.domain.errors import StateConflict
from custody.server.domain.limits import in_btc

PRIORITIES: Final = (("high", "High"), ("medium", "Medium"), ("low", "Low"))
CHAIN_SECONDS: Final = 15


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
    """The signers' keys, of which some are ticked; and the plan where some are."""
    keys = list(dict.fromkeys(visit.request.query_params.getlist("exposed")))
    advisory, plan = visit.place_in_list("advisory"), None
    if keys or advisory is not None:
        wanted = {"exposed_keys": keys, "advisory_id": advisory, "priority": visit.query("priority", "high")}
        plan = _plan(visit, wanted)
    return visit.page(
        "evacuations/plan.html", here="vaults", plan=plan, keys=keys, advisory=advisory, known=_known(visit),
        priorities=PRIORITIES, priority=visit.query("priority", "high"),
    )  # fmt: skip


def _known(visit: Visit) -> list[tuple[str, str]]:
    """Each key of a vault here, with its holder and device in words."""
    found: dict[str, str] = {}
    vaults: list[Vault] = visit.get("list-wallets", workspace_id=visit.here.id)
    for vault in vaults:
        names, prints = names_of(visit, vault), fingerprints(vault)
        for each in vault.signers:
            found[each.key_id] = f"{names[each.user_id]}, fingerprint {prints[each.key_index]}"
    return sorted(found.items(), key=lambda each: each[1])


def _plan(visit: Visit, wanted: Mapping[str, Any]) -> EvacuationPlan:
    plan: EvacuationPlan = visit.post("preview-evacuation", workspace_id=visit.here.id, **wanted)
    return plan


def _asked(visit: Visit) -> dict[str, Any]:
    form = visit.form
    return {
        "exposed_keys": list(dict.fromkeys(form.every("exposed"))),
        "advisory_id": visit.number("advisory") if form.one("advisory") else None,
        "priority": form.one("priority"),
    }


def plan_facts(plan: EvacuationPlan) -> list[tuple[str, str]]:
    return [
        ("Plan", f"{plan.plan_hash[:8]}, fee {plan.fee_rate} sat/vB"),
        *((each.vault_name, _words(each)) for each in plan.vaults),
    ]


def _words(each: PlannedVault) -> str:
    if each.cannot is not None:
        return f"is not moved: {each.cannot}"
    names = ", ".join(signer.in_words() for signer in each.signers)
    moves = f"{in_btc(each.amount_sats)} BTC, fee {each.fee_sats} sats, to {each.replacement_name}"
    return " ".join((f"{each.vault_id}: {moves}, {each.m} of {names}.", *each.notes))


def review_start(visit: Visit) -> Review:
    plan = _plan(visit, _asked(visit))
    if plan.plan_hash != visit.form.one("plan_hash"):
        raise StateConflict("The plan is another one by now: look at the new one.")
    warning = (
        "A second person has to confirm it. Then the vaults are made, proposals without a signature are "
        "cancelled, and the sweeps wait for the signers."
    )
    return Review("Evacuate these vaults?", plan_facts(plan), "Go on", warning)


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
    Row("GET", _HERE, evacuations),
    Row("GET", _HERE + "/progress", progress),
    Row("GET", _HERE + "/plan", choose),
    Row("POST", _HERE + "/start", start, again=evacuations, review=review_start),
    Row("POST", _HERE + "/again", again, again=evacuations),
)
