"""The interface under ``/v1``: one file for each thing that can be asked about, each with its rows of the one table."""

from signerd.loopback.api import (
    account,
    addresses,
    apps,
    devices,
    happenings,
    metrics,
    page,
    proposals,
    psbts,
    settings,
    unlocking,
    vaults,
)
from signerd.loopback.api.table import PREFIX, Route

ROUTES: tuple[Route, ...] = (
    *account.ROUTES,
    *devices.ROUTES,
    *unlocking.ROUTES,
    *vaults.ROUTES,
    *addresses.ROUTES,
    *proposals.ROUTES,
    *psbts.ROUTES,
    *apps.ROUTES,
    *settings.ROUTES,
    *happenings.ROUTES,
    *page.ROUTES,
    *metrics.ROUTES,
)

__all__ = ["PREFIX", "ROUTES", "Route"]
