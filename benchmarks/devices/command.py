"""HWI's command line: a program that is started for each operation."""

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from typing import Any

from firmware_bridge.model import Endpoint


def named(endpoint: Endpoint) -> tuple[str, ...]:
    path = endpoint.place if endpoint.kind == "unix" else endpoint.address
    return ("-t", str(endpoint.family), "-d", path)


async def hwi(*arguments: str) -> Any:
    """What it prints, parsed.

    :raises RuntimeError: it did not do what it was asked.
    """
    options = ("-m", "tests.support.hwi_command", json.dumps([["--stdin"]]))
    process = await asyncio.create_subprocess_exec(
        sys.executable, *options, stdin=PIPE, stdout=PIPE, stderr=PIPE
    )
    # A PSBT of 200 inputs is longer than Linux lets one argument be (128 KiB).
    told, complained = await process.communicate("\n".join(arguments).encode())
    answer = json.loads(told) if told else {"error": complained.decode()}
    if "error" in answer:
        raise RuntimeError(answer["error"])
    return answer
