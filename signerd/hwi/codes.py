"""From the daemon's errors to HWI's. The code of an error stands at its class, that of an outcome here."""

from collections.abc import Mapping
from types import MappingProxyType

from signerd.errors import DeviceFailed, HwiCode, SignerdError


class HwiError(Exception):
    """An error in HWI's form. ``str(error)`` is the sentence."""

    def __init__(self, sentence: str, code: HwiCode) -> None:
        super().__init__(sentence)
        self.code = code


# By the stable codes of ``firmware_bridge``'s outcomes, exhaustively.
OUTCOMES: Mapping[str, HwiCode] = MappingProxyType(
    {
        "refused-by-person": HwiCode.ACTION_CANCELED,
        "cancelled": HwiCode.ACTION_CANCELED,
        "disconnected": HwiCode.DEVICE_CONN_ERROR,
        "locked": HwiCode.DEVICE_NOT_READY,
        "uninitialised": HwiCode.DEVICE_NOT_INITIALIZED,
        "wrong-app": HwiCode.DEVICE_NOT_READY,
        "needs-passphrase": HwiCode.DEVICE_NOT_READY,
        "timed-out": HwiCode.DEVICE_CONN_ERROR,
        "busy": HwiCode.DEVICE_BUSY,
        "no-permission": HwiCode.DEVICE_CONN_ERROR,
        "unsupported": HwiCode.UNAVAILABLE_ACTION,
        "not-enrolled": HwiCode.DEVICE_NOT_READY,
        "wrong-device": HwiCode.BAD_ARGUMENT,
        "address-mismatch": HwiCode.UNKNOWN_ERROR,
        "bad-device-signature": HwiCode.UNKNOWN_ERROR,
        "device-fault": HwiCode.UNKNOWN_ERROR,
        "worker-crashed": HwiCode.UNKNOWN_ERROR,
    }
)


def device_code(sentence: str) -> HwiCode:
    """The code of a device's failure, which the daemon reports by the library's sentence, without a code."""
    # Imported after a failure only: the library is large.
    from firmware_bridge import BridgeError

    for outcome in BridgeError.__subclasses__():
        if outcome.sentence is not BridgeError.sentence and sentence.startswith(outcome.sentence):
            return OUTCOMES[outcome.code]
    return HwiCode.UNKNOWN_ERROR


def code_of(error: SignerdError) -> HwiCode:
    return device_code(str(error)) if isinstance(error, DeviceFailed) else error.hwi


def in_words(error: SignerdError) -> str:
    """The error and its hint: HWI's form has one sentence for both."""
    from signerd.core.text import said

    return f"{said(error)} {error.hint}".strip()
