"""The set-up, from an empty state folder to the first pinned vault: what is done and what is next."""

from dataclasses import dataclass

from starlette.responses import Response

from custody.common.pages.rendering import Live
from signerd.loopback.page.devices import Card, cards
from signerd.loopback.page.rendering import PageRequest, PageRoute
from signerd.loopback.page.settings import ACCOUNT
from signerd.loopback.page.vaults import VaultStatus, vault_status
from signerd.shapes import Status

STEPS = Live("steps", "setup/steps.html", "/setup/steps")


@dataclass(frozen=True)
class SetupProgress:
    """``done``: whether each step is done, in order. ``now``: the first that is not; None once all are."""

    done: dict[str, bool]
    cards: tuple[Card, ...]
    vaults: tuple[VaultStatus, ...]

    @property
    def now(self) -> str | None:
        return next((name for name, over in self.done.items() if not over), None)


def steps_done(status: Status) -> dict[str, bool]:
    return {
        "sign-in": status.signed_in,
        "device": status.devices_ready > 0 or status.fingerprint is not None,
        "register": status.fingerprint is not None,
        "pin": status.vaults_pinned > 0,
    }


async def _progress(asked: PageRequest, status: Status) -> SetupProgress:
    found = tuple(vault_status(view) for view in await asked.service.vaults())
    return SetupProgress(steps_done(status), await cards(asked), found)


async def setup(asked: PageRequest) -> Response:
    status = await asked.service.status()
    return await asked.page(
        "setup/setup.html",
        title="Set up signerd",
        here="/setup",
        steps_part=STEPS,
        account_part=ACCOUNT,
        code_for=None,
        progress=await _progress(asked, status),
    )


async def steps(asked: PageRequest) -> Response:
    status = await asked.service.status()
    return asked.part(STEPS, status=status, progress=await _progress(asked, status))


ROWS = (PageRoute("GET", "/setup", setup), PageRoute("GET", "/setup/steps", steps))
