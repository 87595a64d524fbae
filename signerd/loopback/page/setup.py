"""The set-up, from an empty state folder to the first pinned vault: what is done and what is next."""

from typing import Any

from starlette.responses import Response

from custody.common.pages.rendering import Live
from signerd.loopback.page.devices import cards
from signerd.loopback.page.rendering import PageRequest, PageRoute
from signerd.loopback.page.settings import ACCOUNT
from signerd.loopback.page.vaults import vault_status
from signerd.shapes import Status

STEPS = Live("steps", "setup/steps.html", "/setup/steps")


async def _progress(request: PageRequest, status: Status) -> dict[str, Any]:
    """``done``: whether each step is done, in order. ``now``: the first that is not; None once all are."""
    done = {
        "sign-in": status.signed_in,
        "device": status.devices_ready > 0 or status.fingerprint is not None,
        "register": status.fingerprint is not None,
        "pin": status.vaults_pinned > 0,
    }
    return {
        "done": done,
        "now": next((name for name, over in done.items() if not over), None),
        "cards": await cards(request),
        "vaults": [vault_status(view) for view in await request.to.vaults()],
    }


async def setup(request: PageRequest) -> Response:
    status = await request.service.status()
    return await request.page(
        "setup/setup.html",
        title="Set up signerd",
        here="/setup",
        steps_part=STEPS,
        account_part=ACCOUNT,
        code_for=None,
        progress=await _progress(request, status),
    )


async def steps(request: PageRequest) -> Response:
    status = await request.service.status()
    return request.part(STEPS, status=status, progress=await _progress(request, status))


ROWS = (PageRoute("GET", "/setup", setup), PageRoute("GET", "/setup/steps", steps))
