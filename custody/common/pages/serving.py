"""What a page is served with: its HTTP headers, and static files from a list that is made once, so that no
path of a request reaches the file system.
"""

import gzip
import hashlib
import re
from collections.abc import Mapping
from functools import lru_cache
from http import HTTPStatus
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

# Only our own scripts and styles, no framing, and no form that submits elsewhere.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "worker-src 'none'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
# A page needs no permission of the browser; one that reads a device's QR codes needs the camera.
NO_PERMISSIONS = (
    "camera=(), microphone=(), geolocation=(), display-capture=(), usb=(), serial=(), hid=(), payment=()"
)
CAMERA_PERMISSION = NO_PERMISSIONS.replace("camera=()", "camera=(self)")
# Nothing is cached: a page shows the moment, and to one person.
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": POLICY,
    "Permissions-Policy": NO_PERMISSIONS,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
HTML = "text/html; charset=utf-8"


def attachment(name: str) -> dict[str, str]:
    """The headers of a file that the browser saves."""
    return {**HEADERS, "Content-Disposition": f'attachment; filename="{name}"'}


_SHARED = Path(__file__).parent / "static"
KINDS: Final = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}


class Assets:
    """The shared files and those of one page, which lie in ``folder``, by name."""

    def __init__(self, folder: Path) -> None:
        files = [(each, each.relative_to(top)) for top in (_SHARED, folder) for each in top.rglob("*.*")]
        self.files = {str(name): path for path, name in files if path.suffix in KINDS}

    def answer(self, request: Request, name: str, headers: Mapping[str, str]) -> Response | None:
        """None where there is no such file. A browser revalidates at each load, so that a newer page never
        runs an older script. Files are compressed; pages are not, because their compressed length would leak
        secrets (BREACH).
        """
        path = self.files.get(name)
        if path is None:
            return None
        is_packed = _TAKES_GZIP.search(request.headers.get("accept-encoding", "")) is not None
        content, tag = _file(path, is_packed=is_packed)
        sent = {**headers, "ETag": tag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
        if is_packed:
            sent["Content-Encoding"] = "gzip"
        if is_known(request, tag):
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=sent)
        return Response(content, headers=sent, media_type=KINDS[path.suffix])


def is_known(request: Request, etag: str) -> bool:
    """Whether the caller has this version already: by the weak comparison (RFC 9110, section 13.1.2)."""
    given = request.headers.get("if-none-match", "")
    return etag in {tag.strip().removeprefix("W/") for tag in given.split(",")}


# RFC 9110, section 12.5.3; with a weight of 0 it is refused.
_TAKES_GZIP = re.compile(r"\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))")


@lru_cache(maxsize=32)
def _file(path: Path, *, is_packed: bool) -> tuple[bytes, str]:
    """Its bytes and their strong ETag."""
    content = gzip.compress(path.read_bytes(), mtime=0) if is_packed else path.read_bytes()
    return content, f'"{hashlib.sha256(content).hexdigest()[:32]}"'
