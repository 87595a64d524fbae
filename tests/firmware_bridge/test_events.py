"""Changes of state for whoever listens."""

import pytest

from firmware_bridge.model import Device, DeviceEvent, DeviceState, Endpoint
from firmware_bridge.roster import Hub

pytestmark = pytest.mark.anyio


def event(number):
    device = Device.at(Endpoint.parse("trezor:udp:127.0.0.1:1"), str(number))
    return DeviceEvent(str(number), DeviceState.ABSENT, DeviceState.PRESENT, device)


async def heard(stream):
    return [item.device_id async for item in stream]


async def test_everyone_hears_everything_from_when_they_came():
    hub = Hub()
    early = hub.stream()
    hub.publish(event(1))
    late = hub.stream()
    hub.publish(event(2))
    hub.close()
    assert await heard(early) == ["1", "2"]
    assert await heard(late) == ["2"]
    assert await heard(early) == []


async def test_who_comes_after_the_end_hears_the_end():
    hub = Hub()
    hub.close()
    assert await heard(hub.stream()) == []


async def test_l11_who_does_not_read_loses_the_oldest_and_costs_nothing_more():
    hub = Hub()
    stream = hub.stream()
    for number in range(3000):
        hub.publish(event(number))
    hub.close()
    ids = await heard(stream)
    assert len(ids) < 1100
    assert ids[-1] == "2999"


async def test_who_leaves_is_forgotten():
    hub = Hub()
    hub.stream()
    assert not list(hub._streams)
