"""The devices: their states, unlocking, registering, and the operations the person starts by hand."""

from typing import Any

from starlette.responses import Response

from custody.common.pages.rendering import Fields, Live
from signerd.api.devices import DevicesApi
from signerd.errors import DeviceFailed, InvalidRequest, NoSuchDevice
from signerd.loopback.page.home import saying
from signerd.loopback.page.rendering import PageRequest, PageRoute, act, act_on, fragment, page, part
from signerd.shapes import DeviceView, UnlockStep

DEVICES = Live("devices", "devices/list.html", "/parts/devices")


async def seen(request: PageRequest) -> dict[str, Any]:
    """The devices, and the fingerprint of the registered one."""
    registered = (await request.service.status()).fingerprint
    return {"devices": await request.service.devices(), "registered": registered}


async def one(request: PageRequest) -> DeviceView:
    """The device that the path names. Raises NoSuchDevice."""
    device_id = request.path_id("device_id")
    for device in await request.service.devices():
        if device.id == device_id:
            return device
    raise NoSuchDevice("this device is not connected", hint="Connect it again.")


async def _listed(request: PageRequest) -> dict[str, Any]:
    return {"part": DEVICES, **await seen(request)}


NO_PLACES = "the places of a PIN are the figures 1 to 9"
NOT_THE_SAME = "the two passphrases are not the same"
AGAIN = "Type both again: nothing was sent to the device."


async def _unlocking(request: PageRequest, step: UnlockStep | None = None) -> dict[str, Any]:
    """``step`` None: the current one."""
    device = await one(request)
    failed: DeviceFailed | None = None
    if step is None:
        try:
            step = await request.service.unlocking.current(device.id)
        except DeviceFailed as error:
            failed = error
    return {
        **await seen(request),
        "title": f"Unlock {device.name}",
        "part": Live("unlocking", "devices/unlocking.html", f"/devices/{device.id}/unlocking"),
        "device": device,
        "step": step,
        "failed": failed,
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
    device, status = await one(request), await request.service.status()
    return {
        "title": f"Register {device.name}",
        "device": device,
        "registered": status.fingerprint,
        "signed_in": status.signed_in,
        **saying(request, SUBJECT),
    }


async def preview(request: PageRequest) -> Response:
    """The keys as the device gives them now. Sends nothing to the platform."""
    context = await _registration(request)
    offer = await request.service.preview_registration(context["device"].id)
    return fragment("devices/register_keys.html", preview=offer, **context)


ROWS = (
    page("/devices", "devices/devices.html", "Devices", _listed),
    part(DEVICES.path, _listed),
    act_on("/devices/{device_id}/identify", DevicesApi.identify_device, _listed, DEVICES),
    act_on("/devices/{device_id}/cancel", DevicesApi.cancel_device, _listed, DEVICES),
    act("/devices/{device_id}/another-address", DevicesApi.another_address, "devices/another.html"),
    page("/devices/{device_id}/unlock", "devices/unlock.html", None, _unlocking, here="/devices"),
    part("/devices/{device_id}/unlocking", _unlocking),
    act("/devices/{device_id}/unlock", DevicesApi.start_unlocking, _stepped),
    PageRoute("POST", "/devices/{device_id}/questions/{question_id}", answer),
    page("/devices/{device_id}/register", "devices/register.html", None, _registration, here="/devices"),
    PageRoute("POST", "/devices/{device_id}/register/keys", preview),
    act("/devices/{device_id}/register", DevicesApi.register, "devices/registered.html"),
)
