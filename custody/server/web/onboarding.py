"""Requests for an organisation: anybody signed in may ask, operators of the platform decide."""

from urllib.parse import urlencode

from pydantic import TypeAdapter
from starlette.responses import Response

from custody.schemas.onboarding import (
    OnboardingQuery,
    OnboardingRequest,
    ReviewOnboardingRequest,
    SubmitOnboardingRequest,
)
from custody.server.domain.errors import PermissionDenied, StateConflict
from custody.server.web.endpoint import Call, Door, Endpoint, Unit

PATH = "/api/v1/onboarding-requests"
_LIST = TypeAdapter(list[OnboardingRequest])


def submit(call: Call[SubmitOnboardingRequest]) -> OnboardingRequest:
    """Asks for an organisation with a first workspace. The caller becomes its administrator once it is approved."""
    return call.services.onboarding.submit(call.db, call.caller, call.body)


def requests(call: Call[OnboardingQuery]) -> Response:
    """An operator's: everybody's requests. Anybody else's: their own. The oldest first, in pages."""
    page = call.services.onboarding.page(call.db, call.caller, call.body)
    headers = {"X-Total-Count": str(page.total)}
    if page.has_more:
        values = call.body.model_dump(mode="json", exclude_none=True) | {"after": page.items[-1].uid}
        headers["Link"] = f'<{PATH}?{urlencode(values)}>; rel="next"'
    body = _LIST.dump_json(page.items, by_alias=True)
    return Response(body, media_type="application/json", headers=headers)


def review(call: Call[ReviewOnboardingRequest]) -> OnboardingRequest:
    """An operator's decision, once. An approval founds the organisation and its workspace in the same step."""
    return call.services.onboarding.review(call.db, call.caller, call.ids["uid"], call.body)


ENDPOINTS = (
    Endpoint(
        "POST",
        PATH,
        submit,
        OnboardingRequest,
        Door.SIGNED_IN,
        Unit.WRITE,
        SubmitOnboardingRequest,
        creates=True,
        refuses=(StateConflict,),
    ),
    Endpoint(
        "GET",
        PATH,
        requests,
        list[OnboardingRequest],
        Door.SIGNED_IN,
        Unit.READ,
        OnboardingQuery,
    ),
    Endpoint(
        "POST",
        PATH + "/{uid}/review",
        review,
        OnboardingRequest,
        Door.SIGNED_IN,
        Unit.WRITE,
        ReviewOnboardingRequest,
        creates=True,
        refuses=(PermissionDenied, StateConflict),
    ),
)
