"""Presses the buttons and reads the screen of a device outside the tests' own process.

`pytest tests/conformance --endpoint ENDPOINT --hands MODULE:FACTORY` tests such a device
against the contract. The factory is a `Hands`, or anything that is called like one and has its methods.
`ProcessHands`, the default, starts one of our virtual devices as a program of its own at that endpoint, and
is the example for a maker's emulator or a robot.
"""

import json
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any, Final, TextIO

from device_simulators.errors import NoSuchPrompt
from device_simulators.panel import Prompt
from firmware_bridge.model import Endpoint
from multisig import Network

_PATIENCE: Final = 60.0
"""Seconds for a program of ours to start, or to do what it was told, on a machine that is busy."""


class Unable(Exception):
    """These hands cannot do that. The case that needs it is skipped, with this text as the reason."""


class Hands:
    """For one device and one case. No method is called by two threads at once; none may take more than a few
    seconds.

    `words` are the seed's (BIP-39, no passphrase), `network` is the one that the device is set to. `options`
    are what else the case needs of the device: `pin`, `passphrase_protection`, `allow_keypress`; see the
    virtual devices for the others.

    :raises Unable: the device cannot be like that.
    """

    def __init__(self, endpoint: Endpoint, words: str, network: Network, **options: object) -> None:
        if options:
            raise Unable(f"these hands cannot give the device {', '.join(options)}")
        self.endpoint, self.words, self.network = endpoint, words, network

    def start(self) -> None:
        """The device answers at its endpoint, idle, with its seed, without vaults, locked if it has a PIN."""
        raise NotImplementedError

    def screen(self) -> Prompt | None:
        """What is on the screen and needs an answer, with all of its pages; None where nothing is asked.

        `kind` is empty where these eyes cannot tell. A screen without buttons (`no` and `yes` empty) needs no
        answer. Where the left button does not refuse, `no` is empty and `turn` says what it does.
        """
        raise NotImplementedError

    def press_yes(self) -> None:
        """Approve what is on the screen; return when the device has taken it, so that the next look sees what
        follows.
        """
        raise NotImplementedError

    def press_no(self) -> None:
        """Refuse what is on the screen, as `press_yes`;
        or close a notice that stays until a key is pressed.
        """
        raise NotImplementedError

    def unplug(self) -> None:
        """The device stops answering; what it keeps it keeps."""
        raise Unable("these hands cannot unplug the device")

    def plug(self) -> None:
        """The device answers again, at the same endpoint."""
        raise Unable("these hands cannot plug the device in")

    def lock(self) -> None:
        raise Unable("these hands cannot lock the device")

    def unlock(self) -> None:
        """By the device's own buttons."""
        raise Unable("these hands cannot unlock the device")

    def close(self) -> None:
        """The case is over, however it ended."""


class ProcessHands(Hands):
    """A virtual device of ours, run by `python -m device_simulators`: its screen and its buttons are lines of
    JSON.
    """

    def __init__(self, endpoint: Endpoint, words: str, network: Network, **options: object) -> None:
        super().__init__(endpoint, words, network)
        self._command = [
            *(sys.executable, "-m", "device_simulators", str(endpoint.family), "--json"),
            *("--listen", endpoint.place, "--network", str(network), *_flags(options)),
        ]
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._process: subprocess.Popen[str] | None = None
        self._eye: threading.Thread | None = None
        self._changed = threading.Condition()
        self._number: int | None = None
        self._notice: int | None = None
        self._shown: Prompt | None = None
        self._seen: list[str] = []

    def start(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="hands-")
        seed = Path(self._folder.name) / "seed"
        seed.touch(mode=0o600)
        seed.write_text(self.words)
        process = subprocess.Popen(
            [*self._command, "--seed-file", str(seed)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None, "asked for above"
        self._process = process
        self._eye = threading.Thread(target=self._read, args=[process.stdout], name="eye", daemon=True)
        self._eye.start()
        self._wait_for("ready")

    def screen(self) -> Prompt | None:
        with self._changed:
            return self._shown

    def press_yes(self) -> None:
        self._press("yes", "approved")

    def press_no(self) -> None:
        with self._changed:
            notice, self._notice = self._notice, None
            self._shown = self._shown if notice is None else None
        if notice is None:
            self._press("no", "refused")
        else:
            # That it goes is not told.
            self._tell({"no": notice})

    def unplug(self) -> None:
        self._tell({"unplug": True})
        self._wait_for("unplugged")

    def plug(self) -> None:
        self._tell({"plug": True})
        self._wait_for("plugged")

    def lock(self) -> None:
        self._tell({"lock": True})
        self._wait_for("locked")

    def unlock(self) -> None:
        self._tell({"unlock": True})
        self._wait_for("unlocked")

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.stdin is not None and self._eye is not None:
            process.kill()
            process.wait()
            process.stdin.close()
            self._eye.join()
        if self._folder is not None:
            self._folder.cleanup()

    def _press(self, button: str, done: str) -> None:
        with self._changed:
            number = self._number
        if number is None:
            raise NoSuchPrompt("nothing on the screen waits for an answer")
        self._tell({button: number})
        self._wait_for(done, "withdrawn")

    def _tell(self, command: dict[str, object]) -> None:
        process = self._process
        if process is None or process.stdin is None:
            raise Unable("the device was not started")
        with self._changed:
            self._seen.clear()
        process.stdin.write(json.dumps(command) + "\n")
        process.stdin.flush()

    def _wait_for(self, *events: str) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: {*events, "error", "ended"} & {*self._seen}, _PATIENCE):
                raise TimeoutError(f"the virtual device did not say {' or '.join(events)}")
            if not {*events} & {*self._seen}:
                raise NoSuchPrompt(f"the virtual device said {', '.join(self._seen)}")

    def _read(self, lines: TextIO) -> None:
        with lines:
            for line in lines:
                with self._changed:
                    self._take(json.loads(line))
                    self._changed.notify_all()
        with self._changed:
            self._seen.append("ended")
            self._changed.notify_all()

    def _take(self, event: dict[str, Any]) -> None:
        match event:
            case {"event": "prompt", "id": number, "lines": [*lines], **words}:
                buttons = {name: words[name] for name in ("no", "yes", "turn")}
                self._number, self._shown = number, Prompt(words["kind"], tuple(lines), **buttons)
                self._notice = None
            case {"event": "notice", "id": number, "kind": kind, "lines": [*lines]}:
                self._notice, self._shown = number, Prompt(kind, tuple(lines), "", "")
            case {"event": "approved" | "refused" | "withdrawn", "id": number} if number == self._number:
                self._number = self._shown = None
        self._seen.append(str(event["event"]))


def _flags(options: dict[str, object]) -> list[str]:
    """As the command line calls them.

    :raises Unable: it has no such option.
    """
    flags = []
    for name, value in options.items():
        match name, value:
            case "pin", str():
                flags += ["--pin", value]
            case (("passphrase_protection" | "allow_keypress"), bool()):
                flags += [f"--{name.replace('_', '-')}"] * value
            case _:
                raise Unable(f"a virtual device run as a program has no option {name}")
    return flags
