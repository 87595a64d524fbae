"""A device without a cable. export, import: an approved proposal goes to it by card or QR code, and its
answer comes back. register --file, pin --enrolment-file: registering it, and enrolling a vault on it.
"""

import shutil
import sys
from base64 import b64decode, b64encode
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from custody.common.terminal import Exit, answer, put, say
from signerd.cli.desk import Desk, asking, path_option, read_text
from signerd.cli.naming import proposal_named
from signerd.cli.proposals import (
    STANDARD,
    acknowledge_option,
    approved,
    outcome,
    psbt_id_argument,
    psbt_version_option,
    refused_by_checks,
    status_of,
)
from signerd.cli.words import proposal_text
from signerd.core.states import APPROVED, ASKED, State
from signerd.errors import AnswerMissing, DeviceError, IllegalEvent, InvalidRequest, StaleApproval

if TYPE_CHECKING:
    from signerd.client import DaemonClient
    from signerd.shapes import Compared, EnrolmentForm, ProposalView, PsbtVersion, Registered


# QR versions, and the capitals and digits that each holds at level L (ISO/IEC 18004).
_CAPACITY: Final = {5: 154, 10: 395, 15: 758, 20: 1249, 27: 2132}
AGAIN: Final = "It is recorded as exported: the same command again gives the same bytes."
# Four light modules on each side.
_MARGIN: Final = 8
_LINES_BELOW: Final = 2


@psbt_id_argument
@path_option("--out", metavar="OUT", help="Where to write it: a new file, or the folder of a card.")
@click.option("--qr", type=click.Choice(["bbqr", "ur"]), help="Show it as QR codes, one after the other.")
@psbt_version_option
@acknowledge_option
@asking
def export(
    desk: Desk,
    psbt_id: str,
    out: Path | None,
    qr: str | None,
    psbt_version: "PsbtVersion | None",
    acknowledge: tuple[str, ...],
) -> None:
    """Approve a proposal, and export it for a device without a cable.

    It then counts as signed, whether or not an answer is ever imported. Without --out and --qr it is printed
    as base64. A second export gives the same bytes.
    """
    desk = replace(desk, writes=True)
    if out is not None and not (out if out.is_dir() else out.parent).is_dir():
        raise InvalidRequest(f"{out.parent} is not a folder", hint="Nothing was asked.")
    view = proposal_named(desk.daemon, psbt_id, unseen=desk.yes)
    psbt_id = view.psbt_id
    desk.tell(proposal_text(view) + "\n")
    if view.state not in APPROVED:
        if view.state in {*ASKED, "refused"} and not view.allowed:
            raise refused_by_checks(view)
        _require_unplugged(desk.daemon)
        question = "Give this out to be signed (it counts as signed from then on)"
        approved(desk, view, acknowledge, question)
    try:
        given = desk.daemon.export_psbt(psbt_id, psbt_version or "0")
    except StaleApproval:
        if view.state != State.EXPORTED:
            raise
        _approve_anew(desk, desk.daemon.proposal(psbt_id), acknowledge)
        given = desk.daemon.export_psbt(psbt_id, psbt_version or "0")
    if out is not None:
        path = written(b64decode(given.psbt), given.file_name, out, AGAIN)
        desk.tell(f"Written: {path}. Sign it on your device; then `signerd import FILE`.")
    if desk.as_json:
        answer(given)
    elif qr is not None:
        _show(desk, b64decode(given.psbt), qr)
    elif out is None:
        put(given.psbt)


def _require_unplugged(daemon: "DaemonClient") -> None:
    """Raises IllegalEvent while the registered device is connected: an approval would go to it at once."""
    own = daemon.status().fingerprint
    try:
        connected = {device.fingerprint for device in daemon.devices()}
    except DeviceError:
        # Where devices cannot be listed, none is asked.
        return
    if own is not None and own in connected:
        raise IllegalEvent(
            f"your device {own} is connected: what you approve goes to it at once, and is not exported",
            hint="Approve it there with `signerd approve`, or unplug the device and export again.",
        )


def written(content: bytes, name: str, out: Path, hint: str) -> Path:
    """Write a new file ``out``, or ``name`` in the folder ``out``, flushed to the card. Never replaces
    another file.

    Raises InvalidRequest, with ``hint``.
    """
    from firmware_bridge.airgap import card
    from firmware_bridge.errors import BridgeError

    folder, name = (out, name) if out.is_dir() else (out.parent, out.name)
    try:
        return card.write(folder, name, content)
    except BridgeError as error:
        raise InvalidRequest(str(error), hint=f"{error.hint or ''} {hint}".strip()) from None


def _show(desk: Desk, content: bytes, series: str) -> None:
    """One code after the other, as large as the terminal takes."""
    from firmware_bridge.airgap import CodeSeries, PictureFormat, TooMuchForCodes, draw, series_of, version_of
    from firmware_bridge.airgap.transfer import Content

    window = shutil.get_terminal_size()
    side = min(window.columns, 2 * (window.lines - _LINES_BELOW)) - _MARGIN
    fitting = [version for version in _CAPACITY if 17 + 4 * version <= side]
    try:
        room = _CAPACITY[max(fitting, default=min(_CAPACITY))]
        texts = series_of(content, Content.PSBT, CodeSeries(series), room)
    except TooMuchForCodes as error:
        raise InvalidRequest(
            str(error), hint="Write it to a card with --out, or make the window larger."
        ) from None
    version = version_of(texts)
    for number, text in enumerate(texts, start=1):
        put(draw(text, PictureFormat.TERMINAL, version=version).decode())
        say(f"Code {number} of {len(texts)}.")
        if number < len(texts):
            desk.answers.line("Enter shows the next", empty=True)


@click.argument(
    "file",
    metavar="FILE",
    help="What the device wrote: a PSBT in any form, or lines of QR texts; - reads standard input.",
)
@acknowledge_option
@click.option("--wait/--no-wait", default=True, help="Wait for the platform.")
@asking
def import_answer(desk: Desk, file: str, acknowledge: tuple[str, ...], wait: bool) -> None:
    """Import what a device without a cable signed: each signature is verified, then submitted.

    Its transaction says which exported proposal it answers. Where that changed since you approved it, it is
    shown once more and you are asked.
    """
    psbt = b64encode(_answer_of(file)).decode("ascii")
    position = desk.daemon.status().position
    try:
        line = desk.daemon.import_answer(psbt)
    except StaleApproval:
        if not _found_and_approved(desk, psbt, acknowledge):
            raise
        line = desk.daemon.import_answer(psbt)
    final = outcome(desk, line.psbt_id, position, wait=wait)
    desk.give(final)
    raise click.exceptions.Exit(status_of(final))


def _found_and_approved(desk: Desk, psbt: str, acknowledged: tuple[str, ...]) -> bool:
    """Show the exported proposal of this transaction, and ask once more; False where there is none."""
    from multisig import ReceivedPsbt

    txid = ReceivedPsbt.parse(psbt).psbt.tx.txid
    for line in desk.daemon.proposals():
        view = desk.daemon.proposal(line.psbt_id) if line.state == State.EXPORTED else None
        if view is not None and view.money is not None and view.money.txid == txid:
            _approve_anew(desk, view, acknowledged)
            return True
    return False


def _approve_anew(desk: Desk, view: "ProposalView", acknowledged: tuple[str, ...]) -> None:
    desk.tell(f"{proposal_text(view)}\n\nIt changed since you approved it.\n")
    if not view.allowed:
        raise refused_by_checks(view)
    approved(desk, view, acknowledged)


def _answer_of(file: str) -> bytes:
    """A PSBT's bytes. Raises InvalidRequest; the daemon judges the content."""
    from firmware_bridge.airgap import card, codes, handoff
    from firmware_bridge.errors import BridgeError

    try:
        if file == STANDARD:
            carried = sys.stdin.buffer.read(codes.MAX_SCANNED + 1)
        else:
            carried = card.read(Path(file), codes.MAX_SCANNED)
        return handoff.decode_psbt(codes.file_of(carried))
    except BridgeError as error:
        raise InvalidRequest(f"{file}: {error}", hint=error.hint or None) from None


# The daemon's bound.
MAX_EXPORT_BYTES = 16 * 1024
NOTHING_ASKED = "Nothing was registered."


def exports_of(files: tuple[Path, ...]) -> tuple[str, ...]:
    """The text of each. Raises InvalidRequest."""
    return tuple(read_text(file, MAX_EXPORT_BYTES) for file in files)


def register_files(
    desk: Desk, exports: tuple[str, ...], digest: str, challenge_file: Path | None, *, replace: bool
) -> "Registered":
    """Have the challenge signed on the device, and register. Raises AnswerMissing, InvalidRequest."""
    challenge = desk.daemon.challenge_airgapped(exports, digest)
    desk.tell(
        f"Sign this line on your device, as it is, with the key at {challenge.path}, within ten minutes:\n\n"
        f"{challenge.challenge}\n"
    )
    if challenge_file is not None:
        path = written(challenge.file.encode(), challenge.file_name, challenge_file, NOTHING_ASKED)
        desk.tell(f"Written: {path} (Coldcard: Advanced, File Management, Sign Text File)")
    given = desk.answers.line("The file that the device wrote, or the signature itself").strip()
    if not given:
        raise AnswerMissing("there is no signature", hint=NOTHING_ASKED)
    signature = read_text(Path(given), MAX_EXPORT_BYTES) if Path(given).is_file() else given
    return desk.daemon.register_airgapped(exports, digest, challenge.challenge, signature, replace=replace)


def compared_on_device(desk: Desk, vault_id: str, out: Path, form: "EnrolmentForm") -> "Compared":
    """Write the vault's file for the device, and ask which address it shows."""
    file = desk.daemon.enrolment(vault_id, form)
    path = written(file.text.encode(), file.file_name, out, "Nothing was pinned.")
    desk.tell(
        f"Written: {path}\nLoad it on your device, and look at the vault's first receive address there "
        f"(Coldcard: Address Explorer). It must be\n\n  {file.first_address}\n"
    )
    said = desk.answers.line("Does your device show this very address? Type `same` or `another`").strip()
    if said == "same":
        return "same"
    if said == "another":
        return "another"
    desk.tell("Nothing was pinned.")
    raise click.exceptions.Exit(Exit.DECLINED)
