"""What each code means, in one table: for ``signerd explain`` and for docs/sign/codes.md.

It has the codes of errors, checks, devices' outcomes and the platform. The advice for an error or an outcome
is its hint. The meaning of a check is in the table of checks; that of the platform's codes in
custody.schemas.explained.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import TypeVar

from custody.schemas.explained import EXPLAINED
from firmware_bridge.errors import BridgeError
from signerd.cli.terminal import status_of
from signerd.core.checks.table import CHECKS, Stage
from signerd.errors import SignerdError

Error = TypeVar("Error", bound=Exception)
ERROR, CHECK, DEVICE, PLATFORM = "error", "check", "device outcome", "the platform's"


@dataclass(frozen=True)
class Explained:
    """``exit_status``: of a command that ends with this error; None for other codes. ``who``: the person who
    can follow the advice; None where it is the reader.
    """

    code: str
    kind: str
    meaning: str
    advice: str
    exit_status: int | None = None
    who: str | None = None


# The general meaning of each error. The error itself has a more specific sentence.
_ERRORS: Mapping[str, str] = MappingProxyType(
    {
        "account-reused": "Another pinned vault uses the same account of your device.",
        "address-differs": "The device and this machine show different first addresses.",
        "address-not-shown": "The device cannot show the vault's address.",
        "already-asking": "The app asks to be paired, and its earlier request is still open.",
        "already-configured": "The configuration says something else than the command does.",
        "already-proposed": "The PSBT is the transaction of a proposal on the platform. Nothing was stored.",
        "already-running": "Another signerd works on this state folder.",
        "answer-missing": "The command needs an answer, and no terminal can ask for it.",
        "answer-refused": "The file is not a valid answer of your device to this transaction.",
        "backup-locked": "The passphrase or the key file does not open the backup.",
        "backup-not-made": "The backup could not be written.",
        "backup-unreadable": "The file is not a backup, or it is damaged.",
        "config-invalid": "The configuration has a mistake.",
        "config-missing": "The configuration names no platform yet.",
        "daemon-failed": "The daemon failed in a way that has no name of its own.",
        "daemon-not-running": "No daemon answers for this state folder.",
        "device-failed": "The device did not do what it was asked. The error has the device's outcome.",
        "device-not-ready": "The device is locked, busy, or in another app.",
        "entry-refused": "The code for the page is wrong, used, or too old.",
        "file-not-written": "The file that the command makes could not be written.",
        "folder-not-empty": "The state folder is in use, and a backup is restored into an empty one.",
        "host-refused": "A browser called the daemon by a name that is not this machine's.",
        "illegal-event": "The proposal's state does not allow this step.",
        "invalid-request": "A value in the command or in the request is wrong.",
        "journal-corrupted": "The journal is damaged, or was changed outside signerd.",
        "journal-too-new": "A newer version of signerd has written this journal.",
        "journal-unwritable": "The journal cannot be written. Nothing is signed until it can.",
        "keyring-timed-out": "The keyring did not answer.",
        "looser-settings": "The change would let pass what signerd stops today.",
        "name-taken": "Another paired app has this name.",
        "needs-acknowledgement": "A check holds the proposal until you name its warning.",
        "needs-root": "Only root may do this on your system.",
        "no-registered-key": "No key of your device is registered from this machine.",
        "no-secret-store": "There is no keyring and no secrets file for the session.",
        "no-such-device": "No device of this name is connected.",
        "no-such-question": "The device does not ask this any more.",
        "no-such-route": "The daemon has no such call.",
        "not-allowed": "The person has not granted the app this right.",
        "not-caught-up": "After a restore, signerd does not know yet what you signed since the backup.",
        "not-exported": "The answer is for a transaction that was not exported here.",
        "not-for-browsers": "A browser called an interface for programs.",
        "not-on-this-system": "Your operating system does not have what this command needs.",
        "not-our-vault": "None of your registered keys is in the vault.",
        "not-paired": "The app is not paired, or its pairing was ended.",
        "not-pinned": "The vault is not pinned on this machine.",
        "nothing-unlocked": "No device is being unlocked.",
        "origin-refused": "A web site called the daemon, and the person has not let it in.",
        "page-not-served": "The daemon runs without its page.",
        "platform-answers-wrongly": "The platform's answer does not have the form that it must have.",
        "platform-floods": "The platform sends more than this machine keeps. The rest is left out.",
        "platform-refused": "The platform said no. Its own code stands beside the error.",
        "platform-unreachable": "The platform did not answer. The call may have had an effect or none.",
        "refused-by-checks": "A check refuses the proposal; no option changes that.",
        "registration-stale": "The registration was begun too long ago, or with another device.",
        "registrations-unreadable": "The file of the vaults that devices know cannot be read.",
        "request-too-large": "The request is larger than the daemon reads.",
        "request-too-slow": "The request did not arrive in time.",
        "rules-invalid": "The rules have a mistake.",
        "secrets-locked": "The secrets file is locked.",
        "settings-changed": "The settings were changed after you opened them.",
        "sign-in-failed": "The platform did not accept the sign-in.",
        "signed-out": "There is no session with the platform.",
        "socket-unusable": "The daemon's private socket cannot be created or reached.",
        "stale-approval": "The proposal shows something else than what you approved.",
        "system-tool-failed": "A program of the operating system is missing or failed.",
        "too-many-imported": "The app imported more transactions than a person can look at.",
        "too-many-pairings": "Too many apps ask to be paired.",
        "too-many-prompts": "The app asked for the device too often.",
        "too-many-requests": "The app asked too often.",
        "too-many-streams": "Too many programs follow the daemon's events.",
        "unknown-app": "No paired app has this name or id.",
        "unknown-pairing": "The pairing request is over, was collected, or never existed.",
        "unknown-proposal": "This machine knows no such proposal.",
        "unknown-vault": "This machine knows no such vault.",
        "unsafe-folder": "Other users can enter the state folder, or it is not yours.",
        "vault-differs": "The platform's record differs from the vault that you named or pinned.",
        "wrong-pairing-code": "The code is not the one that the app shows.",
        "wrong-verification-code": "The code that you typed is not the vault's.",
    }
)
_OF_CHECKS = (
    "`signerd show ID` says what it found. A check that refuses stays; one that asks is named with "
    "`signerd approve ID --acknowledge CODE`."
)
_OF_RULES = "A rule of your own, in rules.toml: `signerd rules show` lists them."


@cache
def table() -> Mapping[str, Explained]:
    """By code; an error before a check or an outcome of the same name."""
    found = [*_of_devices(), *_of_checks(), *_of_platform(), *_of_errors()]
    return MappingProxyType({one.code: one for one in sorted(found, key=lambda one: one.kind == ERROR)})


def coded(kind: type[Error]) -> Iterator[type[Error]]:
    """The classes below that have a code of their own."""
    for one in kind.__subclasses__():
        if "code" in vars(one):
            yield one
        yield from coded(one)


def _of_errors() -> Iterator[Explained]:
    for kind in coded(SignerdError):
        if kind.code in _ERRORS:
            yield Explained(kind.code, ERROR, _ERRORS[kind.code], kind.default_hint, status_of(kind))


def _of_checks() -> Iterator[Explained]:
    for name, check in CHECKS.items():
        rule = check.stage is Stage.RULES
        meaning = _OF_RULES if rule else f"It passes where this is so: {check.sentence}"
        yield Explained(name, CHECK, meaning, _OF_CHECKS)


def _of_devices() -> Iterator[Explained]:
    for kind in coded(BridgeError):
        yield Explained(kind.code, DEVICE, kind.sentence, kind.hint)


def _of_platform() -> Iterator[Explained]:
    for one in EXPLAINED.values():
        yield Explained(one.code, PLATFORM, one.meaning, one.advice, who=one.who)
