"""Errors as problem details (RFC 9457), with one status for every leaf of the tree."""

from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Any

from custody.phrases import phrase_of
from signerd import errors as e
from signerd.core.text import plain

CONTENT_TYPE = "application/problem+json"

# The caller's fault: 4xx. Something that the person has to do first: 409. Not available now: 503.
STATUSES: Mapping[type[e.SignerdError], HTTPStatus] = MappingProxyType(
    {
        e.IllegalEvent: HTTPStatus.CONFLICT,
        e.UnknownProposal: HTTPStatus.NOT_FOUND,
        e.StaleApproval: HTTPStatus.CONFLICT,
        e.RefusedByChecks: HTTPStatus.CONFLICT,
        e.NeedsAcknowledgement: HTTPStatus.CONFLICT,
        e.AlreadyProposed: HTTPStatus.CONFLICT,
        e.TooManyImported: HTTPStatus.TOO_MANY_REQUESTS,
        e.NotExported: HTTPStatus.CONFLICT,
        e.AnswerRefused: HTTPStatus.CONFLICT,
        e.NotCaughtUp: HTTPStatus.CONFLICT,
        e.UnknownVault: HTTPStatus.NOT_FOUND,
        e.NotOurVault: HTTPStatus.CONFLICT,
        e.VaultDiffers: HTTPStatus.CONFLICT,
        e.WrongCode: HTTPStatus.CONFLICT,
        e.AccountReused: HTTPStatus.CONFLICT,
        e.NotPinned: HTTPStatus.CONFLICT,
        e.AddressDiffers: HTTPStatus.CONFLICT,
        e.NoRegisteredKey: HTTPStatus.CONFLICT,
        e.RegistrationStale: HTTPStatus.CONFLICT,
        e.NoSuchDevice: HTTPStatus.CONFLICT,
        e.DeviceUnready: HTTPStatus.CONFLICT,
        e.DeviceFailed: HTTPStatus.CONFLICT,
        e.AddressNotShown: HTTPStatus.CONFLICT,
        e.NoSuchQuestion: HTTPStatus.NOT_FOUND,
        e.NothingUnlocked: HTTPStatus.CONFLICT,
        e.AlreadyRunning: HTTPStatus.SERVICE_UNAVAILABLE,
        e.JournalCorrupted: HTTPStatus.SERVICE_UNAVAILABLE,
        e.JournalTooNew: HTTPStatus.SERVICE_UNAVAILABLE,
        e.JournalUnwritable: HTTPStatus.SERVICE_UNAVAILABLE,
        e.UnsafeFolder: HTTPStatus.SERVICE_UNAVAILABLE,
        e.RegistrationsUnreadable: HTTPStatus.SERVICE_UNAVAILABLE,
        e.BackupUnreadable: HTTPStatus.CONFLICT,
        e.BackupLocked: HTTPStatus.CONFLICT,
        e.BackupNotMade: HTTPStatus.CONFLICT,
        e.FileNotWritten: HTTPStatus.CONFLICT,
        e.FolderNotEmpty: HTTPStatus.CONFLICT,
        e.ConfigMissing: HTTPStatus.SERVICE_UNAVAILABLE,
        e.ConfigInvalid: HTTPStatus.SERVICE_UNAVAILABLE,
        e.RulesInvalid: HTTPStatus.SERVICE_UNAVAILABLE,
        e.SettingsChanged: HTTPStatus.CONFLICT,
        e.LooserSettings: HTTPStatus.CONFLICT,
        e.NoSecretStore: HTTPStatus.SERVICE_UNAVAILABLE,
        e.SecretsLocked: HTTPStatus.SERVICE_UNAVAILABLE,
        e.KeyringTimedOut: HTTPStatus.SERVICE_UNAVAILABLE,
        e.SignedOut: HTTPStatus.CONFLICT,
        e.SignInFailed: HTTPStatus.CONFLICT,
        e.PlatformUnreachable: HTTPStatus.SERVICE_UNAVAILABLE,
        e.PlatformRefused: HTTPStatus.BAD_GATEWAY,
        e.PlatformAnswersWrongly: HTTPStatus.BAD_GATEWAY,
        e.PlatformFloods: HTTPStatus.BAD_GATEWAY,
        e.InvalidRequest: HTTPStatus.UNPROCESSABLE_ENTITY,
        e.RequestTooLarge: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        e.RequestTooSlow: HTTPStatus.REQUEST_TIMEOUT,
        e.NotForBrowsers: HTTPStatus.FORBIDDEN,
        e.NotPaired: HTTPStatus.UNAUTHORIZED,
        e.NotAllowed: HTTPStatus.FORBIDDEN,
        e.UnknownPairing: HTTPStatus.NOT_FOUND,
        e.AlreadyAsking: HTTPStatus.CONFLICT,
        e.NameTaken: HTTPStatus.CONFLICT,
        e.TooManyPairings: HTTPStatus.TOO_MANY_REQUESTS,
        e.WrongPairingCode: HTTPStatus.CONFLICT,
        e.UnknownApp: HTTPStatus.NOT_FOUND,
        e.NoSuchRoute: HTTPStatus.NOT_FOUND,
        e.TooManyStreams: HTTPStatus.TOO_MANY_REQUESTS,
        e.TooManyPrompts: HTTPStatus.TOO_MANY_REQUESTS,
        e.TooManyRequests: HTTPStatus.TOO_MANY_REQUESTS,
        e.HostRefused: HTTPStatus.FORBIDDEN,
        e.OriginRefused: HTTPStatus.FORBIDDEN,
        e.EntryRefused: HTTPStatus.FORBIDDEN,
        e.PageNotServed: HTTPStatus.CONFLICT,
        e.SocketUnusable: HTTPStatus.SERVICE_UNAVAILABLE,
        e.DaemonNotRunning: HTTPStatus.SERVICE_UNAVAILABLE,
        e.DaemonFailed: HTTPStatus.INTERNAL_SERVER_ERROR,
        e.AlreadyConfigured: HTTPStatus.CONFLICT,
        e.AnswerMissing: HTTPStatus.CONFLICT,
        e.NotOnThisSystem: HTTPStatus.CONFLICT,
        e.NeedsRoot: HTTPStatus.CONFLICT,
        e.SystemToolFailed: HTTPStatus.INTERNAL_SERVER_ERROR,
    }
)


def leaves(root: type[e.SignerdError] = e.SignerdError) -> tuple[type[e.SignerdError], ...]:
    """Every error of the tree that has a code of its own."""
    below = root.__subclasses__()
    if not below:
        return (root,)
    return tuple(leaf for branch in below for leaf in leaves(branch))


def status_of(error: e.SignerdError) -> HTTPStatus:
    return STATUSES[type(error)]


def problem(error: e.SignerdError) -> dict[str, Any]:
    """The body. ``code`` is stable; ``detail`` and ``hint`` are for a person."""
    status = status_of(error)
    body: dict[str, Any] = {
        "type": f"urn:signerd:problem:{error.code}",
        "title": phrase_of(status),
        "status": status.value,
        "code": error.code,
        "detail": plain(str(error)),
        "hint": plain(error.hint),
    }
    if isinstance(error, e.PlatformRefused):
        body |= {"platform_code": plain(error.platform_code), "platform_status": error.status}
    return body


def headers_of(error: e.SignerdError) -> dict[str, str]:
    """Headers that belong to the status (RFC 6750, section 3; RFC 6585, section 4)."""
    if isinstance(error, e.NotPaired):
        return {"WWW-Authenticate": "Bearer"}
    return {"Retry-After": str(error.seconds)} if isinstance(error, e.TooManyRequests) else {}


def error_from(body: Mapping[str, Any]) -> e.SignerdError:
    """The error that a problem describes, for the client; an unknown code becomes DaemonFailed with the same
    words.
    """
    code, sentence, hint = (str(body.get(name, "")) for name in ("code", "detail", "hint"))
    leaf = {kind.code: kind for kind in leaves()}.get(code)
    if leaf is e.PlatformRefused:
        platform_code, status = str(body.get("platform_code", "")), body.get("platform_status")
        return e.PlatformRefused(
            sentence, platform_code=platform_code, status=status if isinstance(status, int) else 0, hint=hint
        )
    if leaf is None:
        return e.DaemonFailed(sentence or "the daemon's answer makes no sense", hint=hint or None)
    return leaf(sentence, hint=hint)
