"""From the daemon's errors to HWI's. Each stands at the class of the error or the outcome."""

from custody.common.text import said
from signerd.errors import DeviceFailed, HwiCode, SignerdError


class HwiError(Exception):
    """An error in HWI's form. ``str(error)`` is the sentence. ``code``: most are about an argument."""

    def __init__(self, sentence: str, code: HwiCode = HwiCode.BAD_ARGUMENT) -> None:
        super().__init__(sentence)
        self.code = code


def device_code(sentence: str) -> HwiCode:
    """The code of a device's failure, which the daemon reports by the library's sentence, without a code."""
    # Imported after a failure only: the library is large.
    from firmware_bridge import BridgeError

    for outcome in BridgeError.__subclasses__():
        if outcome.sentence is not BridgeError.sentence and sentence.startswith(outcome.sentence):
            return HwiCode(outcome.hwi_code)
    return HwiCode.UNKNOWN_ERROR


def code_of(error: SignerdError) -> HwiCode:
    return device_code(str(error)) if isinstance(error, DeviceFailed) else error.hwi


def in_words(error: SignerdError) -> str:
    """The error and its hint: HWI's form has one sentence for both."""
    return f"{said(error)} {error.hint}".strip()
