"""An error as a person meets it: in the form that caused it, or as a page of its own; its status code is kept."""

import contextlib

from starlette.responses import Response

from signerd.callers import Kind
from signerd.errors import NotAllowed, NotPaired, SignerdError
from signerd.loopback.page import rendering
from signerd.loopback.page.request import PageRequest
from signerd.problems import problem, status_of

# htmx says so of its own requests.
FRAGMENT = "hx-request"
# In the form that was sent, where its template keeps a place for it.
IN_PLACE = {"HX-Retarget": "find .problem", "HX-Reswap": "innerHTML"}
# A part that could not be had stays as it is: what it shows is still what was true.
LEFT = {"HX-Reswap": "none"}
ENTER_AGAIN = "Open it again with: signerd open"


async def problem_answer(asked: PageRequest, error: SignerdError) -> Response:
    if isinstance(error, NotPaired | NotAllowed):
        return _enter(asked, error)
    told = problem(error)
    if FRAGMENT in asked.request.headers:
        headers = LEFT if asked.request.method == "GET" else IN_PLACE
        return rendering.answer(rendering.render("problem.html", problem=told), status_of(error), headers)
    context = {"problem": told, "title": told["title"], "here": ""}
    if asked.caller.kind is Kind.PAGE:
        # The frame needs the daemon's status: where that fails too, the words stand alone.
        with contextlib.suppress(SignerdError):
            return await asked.page("problem_page.html", status=status_of(error), **context)
    return rendering.answer(rendering.render("problem_bare.html", **context), status_of(error))


def _enter(asked: PageRequest, error: SignerdError) -> Response:
    """Nothing of the daemon stands on it: not even which network it is for."""
    if FRAGMENT in asked.request.headers:
        headers = LEFT if asked.request.method == "GET" else IN_PLACE
        told = problem(NotPaired("this page is not open any more, and nothing was done", hint=ENTER_AGAIN))
        return rendering.answer(rendering.render("problem.html", problem=told), status_of(error), headers)
    return rendering.answer(rendering.render("enter.html"), status_of(error))
