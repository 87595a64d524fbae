"""What this machine was told to do."""

from signerd import shapes
from signerd.callers import Right
from signerd.loopback.api.table import Route, Service


async def settings(service: Service) -> shapes.SettingsView:
    return await service.settings.shown()


ROUTES = (Route("GET", "/settings", settings, Right.PERSON, "The configuration and the rules, in words"),)
