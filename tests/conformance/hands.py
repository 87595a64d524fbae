"""Presses the buttons and reads the screen of a device outside the tests' own process.

`pytest tests/conformance --endpoint ENDPOINT --hands MODULE:FACTORY` tests it against the contract. The
factory is a `Hands`, or anything that is called like one and has its methods: for a maker's emulator, or a
robot.
"""

from device_simulators.panel import Prompt
from firmware_bridge.model import Endpoint
from multisig import Network


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
