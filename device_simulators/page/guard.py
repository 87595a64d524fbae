"""Who may see the screens and press the buttons: this machine's browser, with the address that was shown.

The address holds a secret of this run, which other users of this machine do not know. A page of another site
can make a browser call here: its Origin gives it away. A name of that site that was rebound to this machine
(DNS rebinding) gives itself away as Host.
"""

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field

from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# 128 bits: not guessable.
SECRET_BYTES = 16
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_OF_OUR_OWN = {"same-origin", "none"}


@dataclass(frozen=True)
class Guard:
    """Checks each request before the application sees it. ``port``: the one that is served."""

    app: ASGIApp
    port: int
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(SECRET_BYTES), repr=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/{self.secret}/"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        refused = self._refusal(scope)
        if refused is not None:
            await refused(scope, receive, _with_headers(send))
            return
        inner = dict(scope, path=scope["path"].removeprefix(f"/{self.secret}"))
        await self.app(inner, receive, _with_headers(send))

    def _refusal(self, scope: Scope) -> Response | None:
        hosts = [f"127.0.0.1:{self.port}", f"localhost:{self.port}"]
        given = _all(scope, b"host")
        if len(given) != 1 or given[0] not in hosts:
            return PlainTextResponse("This is not the address of this page.", 421)
        origins, sites = _all(scope, b"origin"), _all(scope, b"sec-fetch-site")
        own = f"http://{given[0]}"
        if any(origin != own for origin in origins) or any(site not in _OF_OUR_OWN for site in sites):
            return PlainTextResponse("Another site made this request.", 403)
        if scope["method"] not in {"GET", "HEAD"} and origins != [own]:
            return PlainTextResponse("Buttons are pressed on the page only.", 403)
        _, _, rest = scope["path"].partition("/")
        first, slash, _ = rest.partition("/")
        if not secrets.compare_digest(first.encode(), self.secret.encode()) or not slash:
            return PlainTextResponse("Open the whole address that the terminal shows.", 404)
        return None


def _all(scope: Scope, name: bytes) -> list[str]:
    headers: Iterable[tuple[bytes, bytes]] = scope["headers"]
    return [value.decode("latin-1") for key, value in headers if key == name]


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            ours = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
            kept = [pair for pair in message.get("headers", []) if pair[0].lower() not in dict(ours)]
            message = {**message, "headers": [*kept, *ours]}
        await send(message)

    return sending
