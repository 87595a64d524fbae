"""Signed advisories: submitting a list, the vaults that one exposes, and how long their evacuation took."""

from typing import Any

from starlette.responses import Response

from custody.advisory_report import of_advisory, steps, words
from custody.schemas.advisories import AdvisoryPublisher, VaultExposure
from custody.server.console.table import Row
from custody.server.console.vaults import VIEWERS
from custody.server.console.visit import Visit

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


_HERE = "/w/{workspace_id:int}/advisories"
ROWS = (Row("GET", _HERE, advisories), Row("POST", _HERE, take, again=advisories))
