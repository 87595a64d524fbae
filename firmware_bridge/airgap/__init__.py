"""Devices without a cable: requests and answers as files on a card or as QR codes.

    request = request_bytes(psbt, vault)  # a file for the device's card; the person signs there
    psbt = take_signed(answer.read_bytes(), psbt, vault, signer)

    texts = series_of(request, Content.PSBT, Series.BBQR, 2_000)  # or: as QR codes
    scanner = Scanner()
    while not scanner.add(await camera.next_text()).complete: ...
    psbt = take_signed(scanner.result, psbt, vault, signer)

Requests and answers are checked as over a cable, with the same outcomes: leaves of `BridgeError`, or more
precise subclasses. Nothing waits for a person, but a card may be slow: from an event loop, call functions
that take a file or folder in a thread.
"""

from firmware_bridge.airgap.codes import (
    CodeSeries,
    PictureFormat,
    Scanner,
    draw,
    file_of,
    series_of,
    version_of,
)
from firmware_bridge.airgap.handoff import request_bytes, take_signed
from firmware_bridge.airgap.transfer import (
    BadTransfer,
    CardFault,
    CardProtected,
    Content,
    FileNameTaken,
    FinalTransaction,
    NoCard,
    NothingSigned,
    OtherTransaction,
    OtherTransfer,
    Received,
    TooMuchForCodes,
    Transfer,
)
from firmware_bridge.airgap.vault_files import (
    EnrolmentForm,
    enrolment_file,
    enrolment_text,
    message_request,
    parse_signer_keys,
    signature_of,
)

__all__ = [
    "BadTransfer",
    "CardFault",
    "CardProtected",
    "CodeSeries",
    "Content",
    "EnrolmentForm",
    "FileNameTaken",
    "FinalTransaction",
    "NoCard",
    "NothingSigned",
    "OtherTransaction",
    "OtherTransfer",
    "PictureFormat",
    "Received",
    "Scanner",
    "TooMuchForCodes",
    "Transfer",
    "draw",
    "enrolment_file",
    "enrolment_text",
    "file_of",
    "message_request",
    "parse_signer_keys",
    "request_bytes",
    "series_of",
    "signature_of",
    "take_signed",
    "version_of",
]
