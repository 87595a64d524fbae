"""What a person may type where a command takes an id: the id, the beginning of it, or a name.

Names are untrusted labels, chosen by the platform, a device or an app. A name only finds an id, which is
printed before anything is done; no check depends on it. A complete id always means itself, even if something
else has it as a name.
"""

import contextlib
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeVar

from custody.common import naming
from custody.common.naming import LEAST, NamedRecord
from custody.common.terminal import aside
from signerd.asking import ID
from signerd.errors import (
    InvalidRequest,
    NoSuchDevice,
    NotPinned,
    SignerdError,
    UnknownApp,
    UnknownProposal,
    UnknownVault,
)

if TYPE_CHECKING:
    from signerd.client import DaemonClient
    from signerd.core.values import Pin
    from signerd.shapes import DeviceView, ProposalLine, ProposalView, VaultView

T = TypeVar("T")

# Of those that the platform and this daemon make.
_WHOLE = re.compile(r"[0-9a-f]{32}", re.ASCII)


def named(given: str, candidates: Iterable[NamedRecord[T]], kind: str) -> NamedRecord[T] | None:
    """The candidate that is meant, or None. Raises InvalidRequest where several match."""
    try:
        return naming.named(given, candidates, kind)
    except naming.Ambiguous as error:
        raise InvalidRequest(str(error), hint=error.hint) from None


def _meant(given: str, candidates: Iterable[NamedRecord[T]], kind: str, missing: SignerdError) -> T:
    """The record that is meant; its id is printed first where it was not typed in full. Raises InvalidRequest
    where several match, and ``missing``.
    """
    meant = named(given, candidates, kind)
    if meant is None:
        raise missing
    if given != meant.id:
        aside(f"'{given}' is the {kind} {meant.id}: {meant.words}")
    return meant.record


# --- proposals ----------------------------------------------------------------------------------------------


def proposal_named(daemon: "DaemonClient", given: str, *, unseen: bool = False) -> "ProposalView":
    """An open proposal, or else an ended one. A name is one of the person's own address book, of an address
    that it pays.

    ``unseen``: the person is not asked (``--yes``), so the id must be complete: the platform chooses the ids,
    and could choose one with the same beginning.

    Raises:
        InvalidRequest, UnknownProposal.
    """
    if ID.fullmatch(given):
        with contextlib.suppress(UnknownProposal):
            shown = daemon.proposal(given)
            if unseen:
                _require_no_label(daemon, given)
            return shown
    missing = UnknownProposal(
        f"there is no proposal '{given}' here",
        hint=f"Give {LEAST} characters of its id or more: `signerd proposals --all` lists them.",
    )
    try:
        line = _meant(given, map(_of_proposal, daemon.proposals()), "proposal", missing)
    except UnknownProposal:
        line = _meant(given, map(_of_proposal, daemon.proposals(ended=True)), "proposal", missing)
    if unseen:
        raise InvalidRequest(
            "with --yes a proposal is named by its whole id: you are not asked about what was found",
            hint=f"'{given}' is {line.psbt_id}: {line.title}",
        )
    return daemon.proposal(line.psbt_id)


def _require_no_label(daemon: "DaemonClient", given: str) -> None:
    """Refuse an id that equals a name of the address book: the platform chooses the ids. Raises
    InvalidRequest.
    """
    if not _WHOLE.fullmatch(given) and any(
        given.casefold() == label.casefold() for line in daemon.proposals() for label in line.labels
    ):
        raise InvalidRequest(f"'{given}' is an id and your own name of an address: leave out --yes")


def _of_proposal(line: "ProposalLine") -> "NamedRecord[ProposalLine]":
    return NamedRecord(line.psbt_id, tuple(line.labels), line.title, line)


# --- vaults -------------------------------------------------------------------------------------------------


def vault_named(daemon: "DaemonClient", given: str) -> "VaultView":
    """By its id, its verification code, or the name that it was pinned under or that the platform gives it.

    Raises:
        InvalidRequest (two vaults have the name; their codes differ), UnknownVault.
    """
    missing = UnknownVault(f"the platform has shown no vault '{given}'")
    return _meant(given, map(_of_vault, daemon.vaults()), "vault", missing)


def vault_id(daemon: "DaemonClient", given: str) -> str:
    """The id alone; a complete one is not looked up."""
    return given if _WHOLE.fullmatch(given) else vault_named(daemon, given).vault_id


def pin_named(pins: Iterable["Pin"], given: str) -> "Pin":
    """The same among the pinned ones, without a daemon. Raises InvalidRequest, NotPinned."""
    known = (_vault(pin.vault_id, (pin.name,), pin.vault.verification_code, pin) for pin in pins)
    return _meant(given, known, "vault", NotPinned(f"no vault '{given}' is pinned here"))


def _of_vault(vault: "VaultView") -> "NamedRecord[VaultView]":
    names = (vault.name, *([vault.renamed] if vault.renamed else []))
    return _vault(vault.vault_id, names, vault.verification_code, vault)


def _vault(given_id: str, names: tuple[str, ...], code: str | None, vault: T) -> NamedRecord[T]:
    words = f"'{names[0]}', verification code {code or 'not known'}"
    return NamedRecord(given_id, (*names, *([code] if code else [])), words, vault)


# --- devices and apps ---------------------------------------------------------------------------------------


def device_named(connected: Iterable["DeviceView"], given: str) -> "DeviceView":
    """By its id, the name that it gives itself, its model or its fingerprint. Raises InvalidRequest,
    NoSuchDevice.
    """
    missing = NoSuchDevice(f"there is no device '{given}'")
    return _meant(given, map(_of_device, connected), "device", missing)


def _of_device(device: "DeviceView") -> "NamedRecord[DeviceView]":
    names = (device.label, device.model, device.fingerprint)
    words = f"{device.name}, fingerprint {device.fingerprint or 'not known'}"
    return NamedRecord(device.id, tuple(name for name in names if name), words, device)


def app_id(daemon: "DaemonClient", given: str) -> str:
    """By its id or its name, of those that are not revoked. Raises InvalidRequest, UnknownApp."""
    live = (app for app in daemon.apps() if app.state == "live" or app.id == given)
    known = (NamedRecord(app.id, (app.name,), f"'{app.name}'", app.id) for app in live)
    return _meant(given, known, "app", UnknownApp(f"no app '{given}' is paired"))
