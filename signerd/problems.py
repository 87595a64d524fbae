"""Errors as problem details (RFC 9457)."""

from collections.abc import Mapping
from typing import Any

from custody.common.exchange import phrase_of
from custody.common.text import plain
from signerd import errors as e

CONTENT_TYPE = "application/problem+json"


def problem(error: e.SignerdError) -> dict[str, Any]:
    """The body. ``code`` is stable; ``detail`` and ``hint`` are for a person."""
    body: dict[str, Any] = {
        "type": f"urn:signerd:problem:{error.code}",
        "title": phrase_of(error.http_status),
        "status": error.http_status.value,
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
    leaf = {kind.code: kind for kind in e.leaves()}.get(code)
    if leaf is e.PlatformRefused:
        platform_code, status = str(body.get("platform_code", "")), body.get("platform_status")
        return e.PlatformRefused(
            sentence, platform_code=platform_code, status=status if isinstance(status, int) else 0, hint=hint
        )
    if leaf is None:
        return e.DaemonFailed(sentence or "the daemon's answer makes no sense", hint=hint or None)
    return leaf(sentence, hint=hint)
