"""HTTP headers of every page."""

from collections.abc import Mapping
from types import MappingProxyType

# Only our own scripts and styles, no framing, and no form that submits elsewhere.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
# A page needs no permission of the browser; one that reads a device's QR codes needs the camera.
NO_PERMISSIONS = (
    "camera=(), microphone=(), geolocation=(), display-capture=(), usb=(), serial=(), hid=(), payment=()"
)
CAMERA_PERMISSION = NO_PERMISSIONS.replace("camera=()", "camera=(self)")
# Nothing is cached: a page shows the moment, and to one person.
HEADERS: Mapping[str, str] = MappingProxyType(
    {
        "Content-Security-Policy": POLICY,
        "Permissions-Policy": NO_PERMISSIONS,
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cache-Control": "no-store",
    }
)
HTML = "text/html; charset=utf-8"


def attachment(name: str) -> dict[str, str]:
    """The headers of a file that the browser saves."""
    return {**HEADERS, "Content-Disposition": f'attachment; filename="{name}"'}
