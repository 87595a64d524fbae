"""How a command of the device ends other than with its answer."""

from device_simulators.ledger.apdu import Status


class Refused(Exception):
    """The device will not; the host reads a status word, and nothing else, as on the hardware."""

    def __init__(self, status: Status, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Silenced(Exception):
    """A fault has struck: the work ends, and nobody is told."""


def incorrect_data(reason: str) -> Refused:
    """What the app says to a request that makes no sense, that lies, or that names another's wallet."""
    return Refused(Status.INCORRECT_DATA, reason)


def not_supported(reason: str) -> Refused:
    """What the app says to a request that makes sense and is still not for it."""
    return Refused(Status.NOT_SUPPORTED, reason)
