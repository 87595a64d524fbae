"""The devices: their states, unlocking, registering, and the operations the person starts by hand."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from starlette.responses import Response

from custody.common.pages.rendering import Fields, Live
from signerd.api.devices import DevicesApi
from signerd.errors import DeviceFailed, InvalidRequest, NoSuchDevice
from signerd.loopback.page.home import saying
from signerd.loopback.page.rendering import (
    PageRequest,
    PageRoute,
    act,
    act_on,
    fragment,
    page,
    part,
)
from signerd.shapes import DeviceView, UnlockStep

# By DeviceState's values.
STATES: Mapping[str, str] = MappingProxyType(
    {
        "present": "connected, not reached yet",
        "probing": "being identified",
        "locked": "locked",
        "uninitialised": "not set up yet",
        "wrong-app": "another app is open on it",
        "needs-passphrase": "needs its passphrase",
        "ready": "ready",
        "busy": "busy",
        "no-permission": "no permission to open it",
        "unsupported": "cannot be used",
    }
)
# The tone of a card; any other state is "over".
TONES: Mapping[str, str] = MappingProxyType(
    {"ready": "waits", "busy": "goes", "no-permission": "stopped", "unsupported": "stopped"}
)
# States in which unlocking at the computer is offered; a model that cannot says so when tried.
UNLOCKABLE = frozenset({"locked", "needs-passphrase"})
DEVICES = Live("devices", "devices/list.html", "/parts/devices")


@dataclass(frozen=True)
class Card:
    """``ours``: it holds the registered key; None without a registered key or a known fingerprint."""

    view: DeviceView
    name: str
    words: str
    tone: str
    unlockable: bool
    ours: bool | None


def card(view: DeviceView, registered: str | None) -> Card:
    known = registered is not None and view.fingerprint is not None
    return Card(
        view=view,
        name=view.label or view.model,
        words=STATES.get(view.state, view.state),
        tone=TONES.get(view.state, "over"),
        unlockable=view.state in UNLOCKABLE,
        ours=view.fingerprint == registered if known else None,
    )


async def cards(request: PageRequest) -> tuple[Card, ...]:
    registered = (await request.service.status()).fingerprint
    return tuple(card(view, registered) for view in await request.service.devices())


async def one(request: PageRequest) -> Card:
    """The device that the path names. Raises NoSuchDevice."""
    device_id = request.path_id("device_id")
    for card in await cards(request):
        if card.view.id == device_id:
            return card
    raise NoSuchDevice("this device is not connected", hint="Connect it again.")


async def _listed(request: PageRequest) -> dict[str, Any]:
    return {"part": DEVICES, "cards": await cards(request)}


async def another_address(request: PageRequest) -> Response:
    """The device that holds the registered keys shows another address than the page's. Raises NoSuchDevice,
    AddressNotShown.
    """
    registered = (await request.service.status()).fingerprint
    for view in await request.service.devices():
        if view.fingerprint is not None and view.fingerprint == registered:
            await request.call(DevicesApi.another_address, device_id=view.id)
            return fragment("devices/another.html")
    raise NoSuchDevice("your device is not connected", hint="Connect it again, and have it show the address.")


# The cells of the PIN matrix as on the device, top row first, with their names for a screen reader.
PLACES = (
    ("7", "top left"),
    ("8", "top middle"),
    ("9", "top right"),
    ("4", "middle left"),
    ("5", "centre"),
    ("6", "middle right"),
    ("1", "bottom left"),
    ("2", "bottom middle"),
    ("3", "bottom right"),
)
NO_PLACES = "the places of a PIN are the figures 1 to 9"
NOT_THE_SAME = "the two passphrases are not the same"
AGAIN = "Type both again: nothing was sent to the device."


async def _unlocking(request: PageRequest, step: UnlockStep | None = None) -> dict[str, Any]:
    """``step`` None: the current one."""
    card = await one(request)
    failed: DeviceFailed | None = None
    if step is None:
        try:
            step = await request.service.unlocking.current(card.view.id)
        except DeviceFailed as error:
            failed = error
    registered = (await request.service.status()).fingerprint
    return {
        "title": f"Unlock {card.name}",
        "part": Live("unlocking", "devices/unlocking.html", f"/devices/{card.view.id}/unlocking"),
        "card": card,
        "step": step,
        "failed": failed,
        "registered": registered,
        "places": PLACES,
    }


async def answer(request: PageRequest) -> Response:
    """What was typed is used once; the response replaces its form."""
    fields = await request.fields()
    given = None if fields.ticked("leave") else _typed(fields)
    return await _stepped(request, await request.call(DevicesApi.answer_question, answer=given))


async def _stepped(request: PageRequest, step: UnlockStep) -> Response:
    """The device's state after the step."""
    made = await _unlocking(request, step)
    return request.part(made["part"], **made)


def _typed(fields: Fields) -> str:
    """Raises InvalidRequest before anything is sent to the device, so that no attempt is lost."""
    text, kind = fields.one("answer"), fields.one("kind")
    if kind == "pin" and not (text.isascii() and text.isdecimal() and "0" not in text):
        raise InvalidRequest(NO_PLACES, hint="Press the places, or type them on the number pad.")
    if kind == "passphrase" and text != fields.one("again"):
        raise InvalidRequest(NOT_THE_SAME, hint=AGAIN)
    return text


SUBJECT = "registration"


async def _registration(request: PageRequest) -> dict[str, Any]:
    card, status = await one(request), await request.service.status()
    return {
        "title": f"Register {card.name}",
        "card": card,
        "registered": status.fingerprint,
        "signed_in": status.signed_in,
        **saying(request, SUBJECT),
    }


async def preview(request: PageRequest) -> Response:
    """The keys as the device gives them now. Sends nothing to the platform."""
    context = await _registration(request)
    offer = await request.service.preview_registration(context["card"].view.id)
    return fragment("devices/register_keys.html", preview=offer, **context)


ROWS = (
    page("/devices", "devices/devices.html", "Devices", _listed),
    part(DEVICES.path, _listed),
    act_on("/devices/{device_id}/identify", DevicesApi.identify_device, _listed, DEVICES),
    act_on("/devices/{device_id}/cancel", DevicesApi.cancel_device, _listed, DEVICES),
    PageRoute("POST", "/another-address", another_address),
    page("/devices/{device_id}/unlock", "devices/unlock.html", None, _unlocking, here="/devices"),
    part("/devices/{device_id}/unlocking", _unlocking),
    act("/devices/{device_id}/unlock", DevicesApi.start_unlocking, _stepped),
    PageRoute("POST", "/devices/{device_id}/questions/{question_id}", answer),
    page("/devices/{device_id}/register", "devices/register.html", None, _registration, here="/devices"),
    PageRoute("POST", "/devices/{device_id}/register/keys", preview),
    act("/devices/{device_id}/register", DevicesApi.register, "devices/registered.html"),
)
