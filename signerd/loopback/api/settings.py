"""What this machine was told to do."""

from signerd.loopback import shapes
from signerd.loopback.api.table import Route, Service
from signerd.loopback.callers import Right


async def settings(service: Service) -> shapes.SettingsView:
    return await service.settings.shown()


ROUTES = (Route("GET", "/settings", settings, Right.PERSON, "The configuration and the rules, in words"),)
