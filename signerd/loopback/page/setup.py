"""The set-up, from an empty state folder to the first pinned vault: what is done and what is next."""

from typing import Any

from custody.common.pages.rendering import Live
from signerd.loopback.page.devices import seen
from signerd.loopback.page.rendering import PageRequest, page, part
from signerd.loopback.page.settings import ACCOUNT
from signerd.loopback.page.vaults import vault_status

STEPS = Live("steps", "setup/steps.html", "/setup/steps")


async def _progress(request: PageRequest) -> dict[str, Any]:
    """``done``: whether each step is done, in order. ``now``: the first that is not; None once all are."""
    status = await request.service.status()
    done = {
        "sign-in": status.signed_in,
        "device": status.devices_ready > 0 or status.fingerprint is not None,
        "register": status.fingerprint is not None,
        "pin": status.vaults_pinned > 0,
    }
    progress = {
        "done": done,
        "now": next((name for name, over in done.items() if not over), None),
        "vaults": [vault_status(view) for view in await request.to.vaults()],
    }
    parts = {"steps_part": STEPS, "account_part": ACCOUNT}
    return {**await seen(request), "status": status, "progress": progress, "code_for": None, **parts}


ROWS = (
    page("/setup", "setup/setup.html", "Set up signerd", _progress),
    part(STEPS.path, _progress, "steps_part"),
)
