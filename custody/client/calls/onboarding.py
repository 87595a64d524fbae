"""Requests for an organisation."""

from pydantic import TypeAdapter

from custody.client.flow import Core, Plan, call, read
from custody.client.method import idempotency, method
from custody.schemas.common import Few
from custody.schemas.onboarding import (
    OnboardingRequest,
    OnboardingStatus,
    ReviewOnboardingRequest,
    SubmitOnboardingRequest,
)

_PATH = "/api/v1/onboarding-requests"
_REQUESTS = TypeAdapter(Few[OnboardingRequest])


class OnboardingCalls:
    @method
    @staticmethod
    def submit_onboarding_request(
        core: Core, body: SubmitOnboardingRequest, *, idempotency_key: str | None = None
    ) -> Plan[OnboardingRequest]:
        """``POST /api/v1/onboarding-requests``."""
        request = core.build("POST", _PATH, body, headers=idempotency(idempotency_key))
        return read(
            (yield from call(core, request, repeatable=idempotency_key is not None)), OnboardingRequest
        )

    @method
    @staticmethod
    def onboarding_requests(
        core: Core,
        *,
        status: OnboardingStatus | None = None,
        after: int | None = None,
        limit: int | None = None,
    ) -> Plan[list[OnboardingRequest]]:
        """``GET /api/v1/onboarding-requests``: one page, the oldest first; go on ``after`` the last ``uid``."""
        query = {"status": status, "after": after, "limit": limit}
        request = core.build("GET", _PATH, query=query)
        return read((yield from call(core, request, repeatable=True)), _REQUESTS)

    @method
    @staticmethod
    def review_onboarding_request(
        core: Core, uid: int, body: ReviewOnboardingRequest, *, idempotency_key: str | None = None
    ) -> Plan[OnboardingRequest]:
        """``POST /api/v1/onboarding-requests/{uid}/review``."""
        request = core.build("POST", f"{_PATH}/{uid}/review", body, headers=idempotency(idempotency_key))
        return read(
            (yield from call(core, request, repeatable=idempotency_key is not None)), OnboardingRequest
        )
