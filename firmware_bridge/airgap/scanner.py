"""Reads whatever a signing device shows: BBQr, UR, or a bare PSBT in a single QR code."""

from collections.abc import Callable
from typing import Final

from firmware_bridge.airgap import bbqr, psbt_text, ur
from firmware_bridge.airgap.outcomes import OtherTransfer, Unreadable
from firmware_bridge.airgap.transfer import MAX_TEXT, Assembler, Content, Received, Transfer

_FORMATS: Final[dict[str, Callable[[], Assembler]]] = {bbqr.PREFIX: bbqr.Assembler, ur.PREFIX: ur.Assembler}


class _Bare:
    """One QR code without any header, as Coldcard Q shows what is small."""

    def __init__(self) -> None:
        self._result: Transfer | None = None

    @property
    def result(self) -> Transfer | None:
        return self._result

    def add(self, text: str) -> Received:
        if len(text) > MAX_TEXT or not text.isascii():
            raise Unreadable("This QR code holds no PSBT.")
        found = Transfer(Content.PSBT, psbt_text.read(text.encode("ascii")))
        if self._result not in {None, found}:
            raise OtherTransfer("This QR code holds another PSBT than the one before.")
        self._result = found
        return Received(1, 1)


class Scanner:
    """An assembler for the format of the first text that is sound. One scanner reads one transfer.

    ::

        scanner = Scanner()
        while scanner.result is None:
            try:
                received = scanner.add(await camera.next_text())
            except BridgeError as error:
                show(str(error), error.hint)
    """

    def __init__(self) -> None:
        self._make: Callable[[], Assembler] | None = None
        self._assembler: Assembler | None = None

    @property
    def result(self) -> Transfer | None:
        """What was carried, as soon as it is complete."""
        return None if self._assembler is None else self._assembler.result

    def add(self, text: str) -> Received:
        """:raises Unreadable: no sound part; `OtherTransfer` where it is one of another series.
        :raises FinalTransaction: it is a complete transaction.
        """
        make = _format_of(text)
        if self._assembler is None:
            fresh = make()
            received = fresh.add(text)
            self._make, self._assembler = make, fresh
            return received
        if make is not self._make:
            raise OtherTransfer("This QR code is in another format than the ones before.")
        return self._assembler.add(text)


def _format_of(text: str) -> Callable[[], Assembler]:
    start = text[: len(ur.PREFIX)].upper()
    return next((make for prefix, make in _FORMATS.items() if start.startswith(prefix)), _Bare)
