"""Run one virtual device as a program: its screen on standard output, its buttons on standard input.

`python -m device_simulators trezor --json` prints one JSON object a line, `{"event": "ready", …}` first, and
reads commands: words for a person, JSON for a program. Another command line can call `run` itself.
"""

import argparse
import asyncio
import contextlib
import json
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TextIO

from device_simulators.errors import InvalidCommand, VirtualDeviceError
from device_simulators.faults import Faults
from device_simulators.fleet import FAMILIES, DeviceSettings, Plugged, build, load_seed
from device_simulators.panel import (
    Happening,
    Panel,
    PanelEvent,
    Script,
    approve_all,
    ask_person,
    refuse_all,
)
from firmware_bridge.model import Endpoint, Family
from multisig import Network


class Verb(StrEnum):
    YES = "yes"
    NO = "no"
    LOCK = "lock"
    UNLOCK = "unlock"
    UNPLUG = "unplug"
    PLUG = "plug"
    FAULTS = "faults"
    """JSON only: `{"faults": {…}}`, see `Faults.parse`; `{}` ends them. A device that has stalled already
    must be plugged in again.
    """
    QUIT = "quit"


@dataclass(frozen=True)
class PanelCommand:
    """`prompt` is the number of the prompt meant, None for the one on the screen."""

    verb: Verb
    prompt: int | None = None
    faults: Faults | None = None


_ANSWERS = {Verb.YES, Verb.NO}
_SHORT = {"y": Verb.YES, "n": Verb.NO, "q": Verb.QUIT}


def parse_command(line: str) -> PanelCommand:
    """One line: `yes`, `no 3`, `lock`, … or `{"yes": 3}`, `{"lock": true}`, `{"faults": {"stall_at":
    "sign"}}`.

    :raises InvalidCommand: anything else.
    :raises InvalidFaults: a fault that does not exist.
    """
    line = line.strip()
    return _parse_json(line) if line.startswith("{") else _parse_words(line)


def _parse_words(line: str) -> PanelCommand:
    words = line.lower().split()
    if not 1 <= len(words) <= 2:
        raise InvalidCommand(f"this is not a command: {line!r}")
    verb = _SHORT.get(words[0]) or _verb(words[0])
    if len(words) == 1 and verb is not Verb.FAULTS:
        return PanelCommand(verb)
    if verb not in _ANSWERS or not words[1].isascii() or not words[1].isdigit():
        raise InvalidCommand(f"this is not a command: {line!r}")
    return PanelCommand(verb, int(words[1]))


def _parse_json(line: str) -> PanelCommand:
    try:
        said = json.loads(line)
    except ValueError:
        raise InvalidCommand(f"this is not JSON: {line!r}") from None
    if len(said) != 1:
        raise InvalidCommand("one command a line")
    [(name, argument)] = said.items()
    verb = _verb(name)
    match verb, argument:
        case Verb.FAULTS, dict():
            return PanelCommand(verb, faults=Faults.parse(argument))
        case ((Verb.YES | Verb.NO), int()) if argument is not True and argument is not False:
            return PanelCommand(verb, argument)
        case _ if argument is True and verb is not Verb.FAULTS:
            return PanelCommand(verb)
        case _:
            raise InvalidCommand(f"{verb} does not take {argument!r}")


def _verb(word: str) -> Verb:
    try:
        return Verb(word)
    except ValueError:
        raise InvalidCommand(f"there is no command {word!r}") from None


EXIT_FAILED = 1
_END = ""
"""What the reader of standard input puts into the queue at its end; a line is never empty."""

SCRIPTS: dict[str | None, Script] = {None: ask_person, "approve": approve_all, "refuse": refuse_all}
"""The values of `--auto`."""

TEST_NETWORKS = tuple(network for network in Network if network is not Network.MAINNET)
"""A virtual device keeps its seed on the machine that it is to guard against: it is not for real money."""


@dataclass(frozen=True)
class Options:
    """The arguments of the command line. `auto` is None (a person decides), "approve" or "refuse"."""

    settings: DeviceSettings = field(default_factory=DeviceSettings)
    seed_file: Path | None = None
    auto: str | None = None
    json: bool = False


def run(family: Family, options: Options, stdin: TextIO, stdout: TextIO) -> int:
    """Run a device until it is told to quit, `stdin` ends or the process is asked to end. Returns the exit
    status.

    With `auto` and without `json` it runs on after the end of `stdin`: no operator is needed.
    """
    tell = _teller(stdout, json.dumps if options.json else _in_words)
    try:
        return asyncio.run(_run(family, options, stdin, tell))
    except (VirtualDeviceError, ValueError) as error:
        tell(_error(error))
        return EXIT_FAILED
    except KeyboardInterrupt:
        return 0


Happened = dict[str, object]
Tell = Callable[[Happened], None]


async def _run(family: Family, options: Options, stdin: TextIO, tell: Tell) -> int:
    seed = load_seed(options.seed_file)
    panel = Panel(SCRIPTS[options.auto])
    panel.watch(lambda event: tell(_screen(event)))
    plugged = build(family, seed, panel, options.settings)
    try:
        endpoint = await plugged.plug()
        tell(_ready(endpoint, plugged, options.settings.network))
        await _operate(plugged, tell, _lines(stdin), outlive=options.auto is not None and not options.json)
    finally:
        await plugged.device.stop()
        plugged.discard()
    tell({"event": "stopped"})
    return 0


async def _operate(plugged: Plugged, tell: Tell, lines: asyncio.Queue[str], *, outlive: bool) -> None:
    """Carry out line after line until the end of input, a signal or `quit`."""
    ended = asyncio.Event()
    _on_signals(ended.set)
    waiting = asyncio.create_task(ended.wait())
    try:
        while line := await _next_line(lines, waiting):
            if not await _obey_line(plugged, tell, line):
                return
        if outlive:
            await waiting
    finally:
        waiting.cancel()


async def _next_line(lines: asyncio.Queue[str], ended: asyncio.Task[bool]) -> str:
    """The next line; nothing at the end of input or on a signal."""
    coming = asyncio.create_task(lines.get())
    await asyncio.wait({coming, ended}, return_when=asyncio.FIRST_COMPLETED)
    if coming.done():
        return coming.result()
    coming.cancel()
    return _END


async def _obey_line(plugged: Plugged, tell: Tell, line: str) -> bool:
    """Whether to go on."""
    if not line.strip():
        return True
    try:
        return await _obey(plugged, tell, parse_command(line))
    except VirtualDeviceError as error:
        tell(_error(error))
        return True


async def _obey(plugged: Plugged, tell: Tell, command: PanelCommand) -> bool:
    device = plugged.device
    match command.verb:
        case Verb.YES:
            device.panel.press_yes(command.prompt)
        case Verb.NO:
            device.panel.press_no(command.prompt)
        case Verb.LOCK:
            device.lock()
            tell({"event": "locked"})
        case Verb.UNLOCK:
            device.unlock()
            tell({"event": "unlocked"})
        case Verb.UNPLUG:
            await device.stop()
            tell({"event": "unplugged"})
        case Verb.PLUG:
            tell({"event": "plugged", "endpoint": str(await plugged.plug())})
        case Verb.FAULTS:
            device.faults = command.faults or Faults()
            tell({"event": "faults-set"})
        case Verb.QUIT:
            return False
    return True


def _lines(stdin: TextIO) -> asyncio.Queue[str]:
    """Lines as they are typed. The thread that waits for them cannot be stopped, nor delay the exit."""
    queue: asyncio.Queue[str] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def read() -> None:
        # The loop is closed where the program ends before its input does.
        with contextlib.suppress(RuntimeError, ValueError):
            for line in stdin:
                loop.call_soon_threadsafe(queue.put_nowait, line)
            loop.call_soon_threadsafe(queue.put_nowait, _END)

    threading.Thread(target=read, name="operator", daemon=True).start()
    return queue


def _on_signals(end: Callable[[], None]) -> None:
    """SIGTERM and Ctrl-C stop the device cleanly. Only a process's main thread may set handlers."""
    if threading.current_thread() is not threading.main_thread():
        return
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(NotImplementedError):  # Windows
            loop.add_signal_handler(number, end)


def _ready(endpoint: Endpoint, plugged: Plugged, network: Network) -> Happened:
    return {
        "event": "ready",
        "endpoint": str(endpoint),
        "fingerprint": str(plugged.device.fingerprint),
        "network": str(network),
    }


def _screen(event: PanelEvent) -> Happened:
    name = "prompt" if event.happening is Happening.SHOWN else str(event.happening)
    shown: Happened = {"event": name, "id": event.id, "kind": event.prompt.kind}
    if event.happening in {Happening.SHOWN, Happening.NOTICE}:
        shown["lines"] = list(event.prompt.lines)
    if event.happening is Happening.SHOWN:
        shown |= {"no": event.prompt.no, "turn": event.prompt.turn, "yes": event.prompt.yes}
    return shown


def _error(error: Exception) -> Happened:
    if isinstance(error, VirtualDeviceError):
        return {"event": "error", "code": error.code, "message": str(error), "hint": error.hint}
    return {"event": "error", "code": "invalid-option", "message": str(error), "hint": "See --help."}


def _teller(stdout: TextIO, written: Callable[[Happened], str]) -> Tell:
    def tell(happened: Happened) -> None:
        stdout.write(written(happened) + "\n")
        stdout.flush()

    return tell


def _in_words(happened: Happened) -> str:
    match happened:
        case {"event": "ready", "endpoint": endpoint, "fingerprint": fingerprint}:
            commands = "y, n, lock, unlock, unplug, plug, quit"
            return f"Ready at {endpoint}, fingerprint {fingerprint}. Commands: {commands}."
        case {"event": "prompt", "id": number, "lines": [*lines]}:
            return "\n".join((f"┌ prompt {number}", *(f"│ {line}" for line in lines), "└ y or n?"))
        case {"event": "notice", "lines": [*lines]}:
            return "\n".join(("┌", *(f"│ {line}" for line in lines), "└"))
        case {"event": "error", "message": message, "hint": hint}:
            return f"{message}. {hint}"
        case {"event": name, "id": number}:
            return f"prompt {number}: {name}"
        case _:
            return str(happened["event"])


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line of `python -m device_simulators`."""
    given = _parser().parse_args(arguments)
    settings = DeviceSettings(
        network=Network(given.network),
        listen=given.listen,
        allow_keypress=given.allow_keypress,
        label=given.label,
        pin=given.pin,
        passphrase_protection=given.passphrase_protection,
        wallets_file=given.wallets_file,
        app_name=given.app_name,
        answer_seconds=given.answer_milliseconds / 1000,
    )
    options = Options(settings, seed_file=given.seed_file, auto=given.auto, json=given.json)
    return run(Family(given.family), options, sys.stdin, sys.stdout)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m device_simulators",
        description="A virtual signing device: its screen on standard output, its buttons on standard input.",
        epilog=f'{InvalidCommand.hint} Such as: {{"faults": {{"stall_at": "prompt"}}}}',
    )
    parser.add_argument("family", choices=[str(family) for family in FAMILIES])
    parser.add_argument(
        "--listen", help="host:port (Trezor, Ledger) or socket path (Coldcard); default: a free one"
    )
    parser.add_argument(
        "--seed-file", type=Path, help="BIP-39 words; made if missing; default: a new seed each time"
    )
    parser.add_argument(
        "--network", choices=[str(network) for network in TEST_NETWORKS], default=str(Network.REGTEST)
    )
    parser.add_argument("--auto", choices=["approve", "refuse"], help="decide without a person")
    parser.add_argument("--json", action="store_true", help="one JSON object a line, for a program")
    parser.add_argument(
        "--allow-keypress", action="store_true", help="let hosts press the buttons, as emulators do"
    )
    parser.add_argument("--label", default=DeviceSettings.label, help="Trezor: the device's name")
    parser.add_argument("--pin", help="Trezor: digits 1 to 9; starts locked")
    parser.add_argument("--passphrase-protection", action="store_true", help="Trezor: ask for a passphrase")
    parser.add_argument("--wallets-file", type=Path, help="Coldcard: where enrolled wallets are kept")
    parser.add_argument("--app-name", help="Ledger: the open app; default: the Bitcoin app of the network")
    parser.add_argument(
        "--answer-milliseconds", type=float, default=0.0, help="Ledger: the time that each answer takes"
    )
    return parser
