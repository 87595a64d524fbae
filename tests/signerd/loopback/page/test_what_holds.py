"""Whatever was found about a proposal, and in whatever state it is: each door that shows it says first what
holds or refuses it, and offers a yes exactly where the engine would take one.
"""

from dataclasses import replace
from itertools import product

import pytest

from signerd.cli.words import proposal_text
from signerd.core import events
from signerd.core.engine import decide
from signerd.core.review import review
from signerd.core.states import State, state_words
from signerd.core.values import Imported, Record
from signerd.daemon.proposal_views import proposal_view
from signerd.errors import DecisionError, NeedsAcknowledgement, RefusedByChecks
from tests.signerd.loopback.test_routes import STATUS
from tests.support.desk import neighbour, review_context, snapshot_of, spend
from tests.support.examples import drawn
from tests.support.paged import Markup, paged
from tests.support.payments import SHOP, spend_of
from tests.support.served import Scripted

pytestmark = pytest.mark.anyio

RIVAL, SAME = neighbour(spend(fee=1_500), "p-0"), neighbour(spend_of((40,), SHOP), "p-9")
# What may be found: what is said of it and what else is known here.
HONEST = snapshot_of(spend(fee=2_000), "p-2")
FALSE = {"amounts": (1,)}
APPS = {"imported": Imported("App", "app-1", 0), "recipients": (), "amounts": (), "txid_expected": ""}
SAID = ({}, FALSE, APPS, {"psbt": b"garbage!"})
KNOWN = ((), (RIVAL,), (SAME,), (RIVAL, SAME))
# And why it stands where it stands.
REASONS = ({}, {"reason": "It was interrupted.", "alarm": "ALARM: altered."})
FOUND = tuple(product(SAID, KNOWN, REASONS))


def taken(record: Record, found, context) -> str:
    """What becomes of a yes to what is shown: "taken", "held", "refused" or "no question"."""
    try:
        decide(record, events.Approved(found.digest), context)
    except NeedsAcknowledgement:
        return "held"
    except RefusedByChecks:
        return "refused"
    except DecisionError:
        return "no question"
    return "taken"


def joined(text: str) -> str:
    return " ".join(text.split())


async def look(browser, path: str) -> Markup:
    return Markup((await browser.get(path)).text)


# No proposal rests in RECEIVED; what was exported is approved anew only when its answer is imported.
@pytest.mark.parametrize("state", [state for state in State if state not in {State.RECEIVED, State.EXPORTED}])
async def test_what_holds_a_proposal_comes_first_and_a_yes_is_offered_where_it_is_taken(state: State) -> None:
    service = Scripted({"status": STATUS, "devices": ()})
    async with paged(service) as browser:
        for said, known, why in drawn(FOUND, len(FOUND), of=state):
            snapshot, context = replace(HONEST, **said), review_context(neighbours=known)
            record, found = Record(snapshot, state, "t", **why), review(snapshot, context)
            yes, view = taken(record, found, context), proposal_view(record, found)
            service.answers |= {"proposal": view, "proposals": (view,)}
            holding = [check.sentence for check in view.checks if check.acknowledge and yes == "held"]
            head = "Held: read why before you decide" if holding else state_words(state).capitalize()
            whole = await look(browser, "/proposals/p-2")
            for page in (whole, await look(browser, "/proposals/p-2/standing")):
                assert joined(page.by_id("standing").words).startswith(joined(" ".join([head, *holding])))
            for page in (whole, await look(browser, "/proposals/p-2/review?shown=0")):
                words, forms = joined(page.by_id("review").words), page.all("form", id="approve")
                classes = [tag.attributes.get("class") for tag in page.all("button") if tag.parent in forms]
                assert classes == {"taken": ["main"], "held": [None]}.get(yes, [])
                assert ("Approve despite" in words) is bool(holding)
                assert ("It cannot be approved" in words) is (yes == "refused")
                assert yes not in {"held", "refused"} or "Checks" in words.split("Where the money goes")[0]
            assert "Approve" not in (await look(browser, "/")).by_id("proposals").words
            for verbose in (False, True):
                text = proposal_text(view, verbose=verbose)
                _head, verdict, *_others, last = text.split("\n\n")
                assert verdict.startswith("It is held until you name these warnings") is bool(holding)
                assert yes != "refused" or verdict.startswith("It cannot be approved")
                assert last.startswith("Where the money goes")
                named = {check.name for check in view.checks if f"[{check.name}]" in text}
                assert named == {check.name for check in view.checks if verbose or check.outcome != "allow"}
