"""Devices, what they do by hand, and registering the keys of one.

A device is told nothing that a caller has put into words: each row names an operation, and its arguments are numbers and
ids (L5).
"""

from http import HTTPStatus

from starlette.responses import Response

from signerd import shapes
from signerd.callers import Right
from signerd.loopback.api.table import By, PathId, QueryId, Route, Service


async def devices(service: Service) -> tuple[shapes.DeviceView, ...]:
    return await service.devices()


async def identify_device(service: Service, caller: By, device_id: PathId) -> Response:
    await service.handling.identify(device_id, caller)
    return Response(status_code=HTTPStatus.NO_CONTENT)


async def cancel_device(service: Service, device_id: PathId) -> Response:
    await service.handling.cancel(device_id)
    return Response(status_code=HTTPStatus.NO_CONTENT)


async def another_address(service: Service, device_id: PathId) -> Response:
    await service.handling.another_address(device_id)
    return Response(status_code=HTTPStatus.NO_CONTENT)


async def device_accounts(
    service: Service, caller: By, device_id: PathId, body: shapes.AccountRequest
) -> shapes.AccountKeys:
    return await service.handling.account_keys(device_id, body.account, caller)


async def preview_registration(service: Service, device: QueryId = None) -> shapes.RegistrationPreview:
    return await service.preview_registration(device)


async def register(service: Service, body: shapes.RegisterRequest) -> shapes.Registered:
    return await service.register(body.device_id, body.digest, replace=body.replace)


ROUTES = (
    Route("GET", "/devices", devices, Right.READ, "The devices that are there, and their state"),
    Route(
        "POST", "/devices/{device_id}/identify", identify_device, Right.DISPLAY, "Have a device show itself"
    ),
    Route(
        "POST", "/devices/{device_id}/cancel", cancel_device, Right.PERSON, "Give up what runs on a device"
    ),
    Route(
        "POST",
        "/devices/{device_id}/another-address",
        another_address,
        Right.PERSON,
        "Say that a device shows another address than this machine",
    ),
    Route(
        "POST",
        "/devices/{device_id}/accounts",
        device_accounts,
        Right.XPUB,
        "Read the keys of a standard account from a device",
    ),
    Route(
        "POST",
        "/registration/preview",
        preview_registration,
        Right.PERSON,
        "Read the keys that would be registered",
    ),
    Route("POST", "/registration", register, Right.PERSON, "Register the keys that were shown"),
)
