"""The devices: what each needs before it works, and what can be done with it by hand."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from starlette.responses import Response

from signerd.callers import PAGE
from signerd.errors import NoSuchDevice
from signerd.loopback.page.asked import Asked
from signerd.loopback.page.rendering import Live, render
from signerd.loopback.page.rendering import answer as html
from signerd.loopback.page.table import Row
from signerd.shapes import DeviceView

# By DeviceState's values.
STATES: Mapping[str, str] = MappingProxyType(
    {
        "present": "connected, not reached yet",
        "probing": "being asked who it is",
        "locked": "locked",
        "wrong-app": "another app is open on it",
        "needs-passphrase": "wants its passphrase",
        "ready": "ready",
        "busy": "at work",
        "no-permission": "not ours to open",
        "unsupported": "cannot be used",
    }
)
# How a card is marked, where it is neither ready nor waiting for something ordinary.
TONES: Mapping[str, str] = MappingProxyType(
    {"ready": "waits", "busy": "goes", "no-permission": "stopped", "unsupported": "stopped"}
)
# What is unlocked at the computer; where a make cannot, it says so when it is tried.
UNLOCKABLE = frozenset({"locked", "needs-passphrase"})
DEVICES = Live("devices", "devices/list.html", "/parts/devices")


@dataclass(frozen=True)
class Card:
    """``ours``: it holds the registered key; None where none is registered, or whose it is not known yet."""

    view: DeviceView
    name: str
    words: str
    tone: str
    unlockable: bool
    ready: bool
    busy: bool
    ours: bool | None


def card(view: DeviceView, registered: str | None) -> Card:
    known = registered is not None and view.fingerprint is not None
    return Card(
        view=view,
        name=view.label or view.model,
        words=STATES.get(view.state, view.state),
        tone=TONES.get(view.state, "over"),
        unlockable=view.state in UNLOCKABLE,
        ready=view.state == "ready",
        busy=view.state == "busy",
        ours=view.fingerprint == registered if known else None,
    )


async def cards(asked: Asked) -> tuple[Card, ...]:
    registered = (await asked.service.status()).fingerprint
    return tuple(card(view, registered) for view in await asked.service.devices())


async def one(asked: Asked) -> Card:
    """The one that the path names. Raises NoSuchDevice."""
    device_id = asked.path_id("device_id")
    for found in await cards(asked):
        if found.view.id == device_id:
            return found
    raise NoSuchDevice("this device is not connected", hint="Connect it again, and look at the devices.")


async def devices(asked: Asked) -> Response:
    return await asked.page(
        "devices/devices.html", title="Devices", here="/devices", part=DEVICES, cards=await cards(asked)
    )


async def refreshed(asked: Asked) -> Response:
    return asked.part(DEVICES, cards=await cards(asked))


async def identify(asked: Asked) -> Response:
    await asked.service.handling.identify(asked.path_id("device_id"), PAGE)
    return await refreshed(asked)


async def cancel(asked: Asked) -> Response:
    await asked.service.handling.cancel(asked.path_id("device_id"))
    return await refreshed(asked)


async def another_address(asked: Asked) -> Response:
    """From a page where one is shown: on the device that holds the registered keys. Raises NoSuchDevice, AddressNotShown."""
    registered = (await asked.service.status()).fingerprint
    for view in await asked.service.devices():
        if view.fingerprint is not None and view.fingerprint == registered:
            await asked.service.handling.another_address(view.id)
            return html(render("devices/another.html"))
    raise NoSuchDevice("your device is not connected", hint="Connect it again, and have it show the address.")


ROWS = (
    Row("GET", "/devices", devices),
    Row("GET", "/parts/devices", refreshed),
    Row("POST", "/devices/{device_id}/identify", identify),
    Row("POST", "/devices/{device_id}/cancel", cancel),
    Row("POST", "/another-address", another_address),
)
