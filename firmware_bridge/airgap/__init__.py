"""Devices without a cable: requests and answers as files on a card or as QR codes.

    path = write_psbt(psbt, vault, card, label="Rent")  # the card goes to the device; the person signs there
    for answer in find_answers(path):
        psbt = read_signed(answer, psbt, vault, signer)

    scanner = Scanner()  # or: show psbt_bbqr(psbt, vault), then read its screen
    while not scanner.add(await camera.next_text()).complete: ...
    psbt = take_signed(scanner.result, psbt, vault, signer)

Requests and answers are checked as over a cable, with the same outcomes: leaves of `BridgeError`, or more
precise subclasses. Nothing waits for a person, but a card may be slow: from an event loop, call functions
that take a file or folder in a thread.
"""

from firmware_bridge.airgap.codes import (
    Picture,
    Scanner,
    Series,
    draw,
    file_of,
    psbt_bbqr,
    psbt_ur,
    series_of,
    version_of,
)
from firmware_bridge.airgap.handoff import Form, find_answers, read_signed, take_signed, write_psbt
from firmware_bridge.airgap.transfer import (
    CardFault,
    CardProtected,
    Content,
    FinalTransaction,
    NameTaken,
    NoCard,
    NothingSigned,
    OtherTransaction,
    OtherTransfer,
    Received,
    TooMuchForCodes,
    Transfer,
    Unreadable,
)
from firmware_bridge.airgap.vault_files import (
    EnrolmentForm,
    enrolment_text,
    message_request,
    parse_key,
    parse_signer_keys,
    read_key,
    require_airgap,
    signature_of,
    write_enrolment,
)

__all__ = [
    "CardFault",
    "CardProtected",
    "Content",
    "EnrolmentForm",
    "FinalTransaction",
    "Form",
    "NameTaken",
    "NoCard",
    "NothingSigned",
    "OtherTransaction",
    "OtherTransfer",
    "Picture",
    "Received",
    "Scanner",
    "Series",
    "TooMuchForCodes",
    "Transfer",
    "Unreadable",
    "draw",
    "enrolment_text",
    "file_of",
    "find_answers",
    "message_request",
    "parse_key",
    "parse_signer_keys",
    "psbt_bbqr",
    "psbt_ur",
    "read_key",
    "read_signed",
    "require_airgap",
    "series_of",
    "signature_of",
    "take_signed",
    "version_of",
    "write_enrolment",
    "write_psbt",
]
