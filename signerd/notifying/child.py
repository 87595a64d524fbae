"""Sends one notice to the desktop: ``ADDRESS`` as argument, the notice as JSON on stdin.

Not on the command line, which is in the process list. Exit status 0: the desktop accepted it.
"""

import asyncio
import json
import sys

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


async def send(address: str, told: Message) -> bool:
    bus = await MessageBus(bus_address=address, bus_type=BusType.SESSION).connect()
    try:
        answer = await bus.call(told)
        return answer is not None and answer.message_type is MessageType.METHOD_RETURN
    finally:
        bus.disconnect()


async def main(address: str) -> int:
    given = json.load(sys.stdin)
    told = message(str(given["title"]), str(given["body"]), urgent=bool(given["urgent"]))
    try:
        async with asyncio.timeout(SECONDS):
            return 0 if await send(address, told) else 1
    except (OSError, TimeoutError, EOFError):
        return 1


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main(sys.argv[1])))
