"""One notice to the desktop, over the session bus."""

import asyncio

from dbus_fast import BusType, Message, MessageType, Variant
from dbus_fast.aio import MessageBus

# Desktop Notifications Specification 1.2, "D-BUS Protocol".
NAME = "org.freedesktop.Notifications"
PATH = "/org/freedesktop/Notifications"
SIGNATURE = "susssasa{sv}i"
NORMAL, CRITICAL = 1, 2
# The desktop's default; urgent ones stay.
AS_THE_DESKTOP_HAS_IT = -1
SECONDS = 8.0


def message(title: str, body: str, *, urgent: bool) -> Message:
    hints = {
        "urgency": Variant("y", CRITICAL if urgent else NORMAL),
        "category": Variant("s", "transfer"),
        # Kept out of the desktop's history, where it would be out of date.
        "transient": Variant("b", not urgent),
    }
    return Message(
        destination=NAME,
        path=PATH,
        interface=NAME,
        member="Notify",
        signature=SIGNATURE,
        body=["signerd", 0, "", title, body, [], hints, AS_THE_DESKTOP_HAS_IT],
    )


async def send(address: str, title: str, body: str, *, urgent: bool, seconds: float = SECONDS) -> bool:
    """``address``: of the session bus. Whether the desktop accepted it."""
    try:
        async with asyncio.timeout(seconds):
            bus = await MessageBus(bus_address=address, bus_type=BusType.SESSION).connect()
            try:
                answer = await bus.call(message(title, body, urgent=urgent))
            finally:
                bus.disconnect()
    except (OSError, TimeoutError, EOFError):
        return False
    return answer is not None and answer.message_type is MessageType.METHOD_RETURN
