"""What is said with every answer of a page."""

from collections.abc import Mapping
from types import MappingProxyType

# Scripts and styles of ours alone, no frame around us, no form that leads elsewhere.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
# Of what a browser asks its person for, a page asks for nothing; where it reads a device's codes, for the
# camera alone.
NO_PERMISSIONS = (
    "camera=(), microphone=(), geolocation=(), display-capture=(), usb=(), serial=(), hid=(), payment=()"
)
CAMERA_PERMISSION = NO_PERMISSIONS.replace("camera=()", "camera=(self)")
# Said with every answer. Nothing of a page is kept by the browser: it is of the moment, and of one person.
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
