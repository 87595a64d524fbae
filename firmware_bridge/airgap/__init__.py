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

from firmware_bridge.airgap.codes import CodeSeries as CodeSeries
from firmware_bridge.airgap.codes import PictureFormat as PictureFormat
from firmware_bridge.airgap.codes import Scanner as Scanner
from firmware_bridge.airgap.codes import draw as draw
from firmware_bridge.airgap.codes import file_of as file_of
from firmware_bridge.airgap.codes import series_of as series_of
from firmware_bridge.airgap.codes import version_of as version_of
from firmware_bridge.airgap.handoff import request_bytes as request_bytes
from firmware_bridge.airgap.handoff import take_signed as take_signed
from firmware_bridge.airgap.transfer import BadTransfer as BadTransfer
from firmware_bridge.airgap.transfer import CardFault as CardFault
from firmware_bridge.airgap.transfer import CardProtected as CardProtected
from firmware_bridge.airgap.transfer import Content as Content
from firmware_bridge.airgap.transfer import FileNameTaken as FileNameTaken
from firmware_bridge.airgap.transfer import FinalTransaction as FinalTransaction
from firmware_bridge.airgap.transfer import NoCard as NoCard
from firmware_bridge.airgap.transfer import NothingSigned as NothingSigned
from firmware_bridge.airgap.transfer import OtherTransaction as OtherTransaction
from firmware_bridge.airgap.transfer import OtherTransfer as OtherTransfer
from firmware_bridge.airgap.transfer import Received as Received
from firmware_bridge.airgap.transfer import TooMuchForCodes as TooMuchForCodes
from firmware_bridge.airgap.transfer import Transfer as Transfer
from firmware_bridge.airgap.vault_files import EnrolmentForm as EnrolmentForm
from firmware_bridge.airgap.vault_files import enrolment_file as enrolment_file
from firmware_bridge.airgap.vault_files import enrolment_text as enrolment_text
from firmware_bridge.airgap.vault_files import message_request as message_request
from firmware_bridge.airgap.vault_files import parse_signer_keys as parse_signer_keys
from firmware_bridge.airgap.vault_files import signature_of as signature_of
