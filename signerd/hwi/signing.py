"""signtx, promptpin and sendpin: a PIN is sent as places in a matrix that only the device shows."""

import base64
import re
import sys
import time
from argparse import Namespace
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Any, Final

from custody.common.text import amount, plain
from signerd import shapes
from signerd.client import DaemonClient
from signerd.errors import DaemonFailed, DeviceFailed, HwiCode, SignerdError
from signerd.hwi.codes import HwiError, device_code, not_done
from signerd.hwi.listing import PIN_AT_THE_HOST, Chosen, present

_MAGIC: Final = "cHNidP"
_INTERRUPTED: Final = "interrupted"
# How an imported PSBT may end without a signature, with HWI's codes. One interrupted at the device could be
# approved again; as with HWI, a call waits for one attempt only.
ENDS: Final = {
    "declined": HwiCode.ACTION_CANCELED,
    "withdrawn": HwiCode.ACTION_CANCELED,
    "expired": HwiCode.ACTION_CANCELED,
    "refused": HwiCode.INVALID_TX,
    "quarantined": HwiCode.INVALID_TX,
    "superseded": HwiCode.INVALID_TX,
    "broadcast": HwiCode.INVALID_TX,
    "confirmed": HwiCode.INVALID_TX,
    _INTERRUPTED: None,
}


def signed(daemon: DaemonClient, chosen: Chosen, args: Namespace) -> dict[str, Any]:
    """Raises HwiError, KeyboardInterrupt; the PSBT imported for this call is withdrawn then."""
    for registration in args.registrations:
        from signerd.hwi.registrations import HwiRegistration, pinned

        # The PSBT's scripts tell which vault it spends from.
        pinned(daemon, chosen, HwiRegistration.parse(registration).descriptor)
    text = "".join(args.psbt.split())
    if not text.startswith(_MAGIC):
        raise HwiError(
            "this is not a PSBT in base64, which begins with cHNidP. Standard input is read with --stdin "
            "alone, and has the whole command: signtx PSBT"
        )
    chosen.require_registered()
    imported = daemon.import_psbt(text)
    try:
        view = _awaited(daemon, imported, time.monotonic() + args.wait)
    except BaseException:
        # Another program may wait for the same transaction. Where a device is being asked or the daemon has
        # stopped, it cannot be withdrawn and expires within a day.
        if imported.is_new:
            with suppress(SignerdError):
                daemon.withdraw_psbt(imported.psbt_id)
        raise
    return _answer(text, view, chosen.fingerprint)


def _answer(text: str, psbt: str, fingerprint: str | None) -> dict[str, Any]:
    """What was given, in its version, with the daemon's signatures. ``signed``: one of them is new.

    As in HWI, an input whose keys are all of other devices stays as it was given.
    """
    from multisig import Psbt, ReceivedPsbt

    received, told = ReceivedPsbt.parse(text), Psbt.parse(psbt)
    inputs = []
    for given, signed in zip(received.psbt.inputs, told.inputs, strict=True):
        devices = {str(origin.fingerprint) for origin in given.derivations.values()}
        inputs.append(signed if not devices or fingerprint in devices else given)
    answer = received.answer(replace(told, inputs=tuple(inputs)))
    is_new = ReceivedPsbt.parse(answer).psbt != received.psbt
    return {"psbt": base64.b64encode(answer).decode("ascii"), "signed": is_new}


def _awaited(daemon: DaemonClient, imported: "shapes.ImportedView", deadline: float) -> str:
    if imported.signed_psbt is not None:
        return imported.signed_psbt
    _tell(imported)
    # An attempt interrupted before this call does not end it: the person is asked again.
    attempted = imported.state != _INTERRUPTED
    while time.monotonic() < deadline:
        try:
            # Opened before the first look, so that no event is missed.
            with daemon.follow(subject=imported.psbt_id) as lines:
                for line in chain((None,), lines):
                    if time.monotonic() >= deadline:
                        break
                    now = daemon.imported_psbt(imported.psbt_id)
                    attempted = attempted or line is not None or now.state != _INTERRUPTED
                    if (outcome := _outcome(now, attempted=attempted)) is not None:
                        return outcome
        except DaemonFailed as error:
            if not isinstance(error.__cause__, TimeoutError):
                raise
            # No heartbeat: a new stream tells whether the daemon still runs.
            continue
    raise HwiError(
        "it was not approved and signed in time. Ask again when you are at the device.",
        HwiCode.ACTION_CANCELED,
    )


def _outcome(now: "shapes.ImportedView", *, attempted: bool) -> str | None:
    """The signed PSBT; None while it is undecided. ``attempted``: since it was asked for. Raises HwiError."""
    if now.signed_psbt is not None:
        return now.signed_psbt
    if now.state not in ENDS or (now.state == _INTERRUPTED and not attempted):
        return None
    why = plain(now.reason) or f"it is {now.state}"
    raise HwiError(f"not signed: {why}", ENDS[now.state] or device_code(now.reason))


def _tell(imported: "shapes.ImportedView") -> None:
    paid = "" if imported.paid_sats is None else f", which pays {amount(imported.paid_sats)}"
    whose = "" if imported.vault_name is None else f" from '{plain(imported.vault_name)}'"
    sys.stderr.write(
        f"signerd-hwi: a transaction{whose}{paid} waits for you: approve it on signerd's page "
        f"(`signerd open`) or with `signerd approve {imported.psbt_id}`.\n"
    )
    sys.stderr.flush()


# A device takes seconds to check a PIN, and longer after wrong ones.
WORKS_SECONDS: Final = 60.0
_PLACES: Final = re.compile(r"[1-9]{1,50}", re.ASCII)
_LOCKED: Final = HwiCode.DEVICE_NOT_READY
_MATRIX: Final = """Use 'sendpin' to provide the number positions for the PIN as displayed on \
your device's screen
The layout:
    7 8 9
    4 5 6
    1 2 3
"""


def prompt(daemon: DaemonClient, chosen: Chosen, _args: Namespace) -> dict[str, bool]:
    device = _asked_here(chosen)
    if device.state == "ready":
        # Another program may have locked it since. Reading a key asks the device, and no person.
        with suppress(DeviceFailed):
            daemon.device_accounts(device.id)
            raise _unlocked()
    step = _settled(daemon, daemon.start_unlocking(device.id))
    if step.state == "unlocked":
        raise _unlocked()
    if step.question is None or step.question.kind != "pin":
        _left_to_the_page(step)
    sys.stderr.write(_MATRIX)
    return {"success": True}


def send(daemon: DaemonClient, chosen: Chosen, args: Namespace) -> dict[str, bool]:
    """``success`` is false for a wrong PIN."""
    device = _asked_here(chosen)
    if _PLACES.fullmatch(args.pin) is None:
        raise HwiError("a PIN is sent as the places of its digits, 1 to 9")
    question = _open_question(daemon, device)
    try:
        step = _settled(daemon, daemon.answer_question(question, args.pin))
    except DeviceFailed as error:
        if device_code(str(error)) is _LOCKED:
            return {"success": False}
        raise
    if step.state == "asks":
        _left_to_the_page(step)
    return {"success": True}


def _asked_here(chosen: Chosen) -> "shapes.DeviceView":
    """Raises HwiError where the PIN is not typed on the host."""
    device = present(chosen)
    if device.family not in PIN_AT_THE_HOST:
        raise not_done(device.family, "need a PIN sent from the host")
    return device


def _unlocked() -> HwiError:
    return HwiError("The PIN has already been sent to this device", HwiCode.DEVICE_ALREADY_UNLOCKED)


def _open_question(daemon: DaemonClient, device: "shapes.DeviceView") -> str:
    """Raises HwiError."""
    for question in daemon.questions():
        if (question.device_id, question.kind) == (device.id, "pin"):
            return question.id
    if device.state == "ready":
        raise _unlocked()
    raise HwiError("the device does not ask for a PIN now: begin with 'promptpin'", _LOCKED)


def _settled(daemon: DaemonClient, step: "shapes.UnlockStep") -> "shapes.UnlockStep":
    """The step after the device's own work. Each request blocks for some seconds of it."""
    deadline = time.monotonic() + WORKS_SECONDS
    while step.state == "works":
        if time.monotonic() >= deadline:
            raise HwiError("the device did not finish in time", HwiCode.DEVICE_CONN_ERROR)
        step = daemon.unlocking_step(step.device_id)
    return step


def _left_to_the_page(step: "shapes.UnlockStep") -> None:
    """Raises HwiError: the caller must not send a passphrase as a PIN."""
    kind = None if step.question is None else step.question.kind
    raise HwiError(
        f"the device asks for its {kind}: answer on signerd's page or with `signerd devices unlock`",
        HwiCode.NO_PASSWORD,
    )
