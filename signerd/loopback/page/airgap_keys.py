"""Registering the keys of an air-gapped device: its keys, and the challenge that it signs.

No state is kept between the steps: each form carries the keys and the digest of what was shown.
"""

from base64 import b64encode
from typing import Any

from starlette.responses import Response

from custody.pages.rendering import Fields
from signerd import shapes
from signerd.errors import AnswerRefused
from signerd.loopback.page.airgap import as_address
from signerd.loopback.page.rendering import PageRequest, Row, render, shaped
from signerd.loopback.page.rendering import answer as html

REGISTER = "/airgap/register"
# The limits of ``shapes.AirgapKeysRequest`` and ``shapes.AirgapRegisterRequest``.
MOST = {"export": 16_384, "signature": 4_096}


def _exports(fields: Fields) -> tuple[str, ...]:
    """Raises AnswerRefused."""
    given = tuple(text for text in fields.every("export") if text.strip())
    if not given:
        raise AnswerRefused("there are no keys", hint="Show the device's code, choose its file, or paste it.")
    return given


async def _context(asked: PageRequest) -> dict[str, Any]:
    status = await asked.service.status()
    return {"registered": status.fingerprint, "signed_in": status.signed_in, "most": MOST}


async def register(asked: PageRequest) -> Response:
    return await asked.page(
        "devices/airgapped.html",
        title="Register a device without a cable",
        here="/devices",
        **await _context(asked),
    )


async def preview(asked: PageRequest) -> Response:
    """Sends nothing to the platform."""
    said = shaped(shapes.AirgapKeysRequest, exports=_exports(await asked.fields()))
    found = await asked.service.airgap_setup.preview(said.exports)
    context = await _context(asked)
    return html(render("devices/airgapped_keys.html", preview=found, exports=said.exports, **context))


async def challenge(asked: PageRequest) -> Response:
    """Bound to the digest of the keys that were shown."""
    fields = await asked.fields()
    said = shaped(shapes.AirgapChallengeRequest, exports=_exports(fields), digest=fields.one("digest"))
    found = await asked.service.airgap_setup.challenge(said.exports, said.digest)
    return html(
        render(
            "devices/airgapped_challenge.html",
            asked=found,
            code=_code(found),
            file=b64encode(found.file.encode()).decode("ascii"),
            said=said,
            fingerprint=fields.one("fingerprint"),
            **await _context(asked),
        )
    )


def _code(found: shapes.AirgapChallenge) -> str:
    """The QR code of a message to sign, as Jade, SeedSigner, Krux and Specter-DIY read it."""
    from firmware_bridge.airgap import draw

    return as_address(draw(f"signmessage {found.path} ascii:{found.challenge}"))


async def confirm(asked: PageRequest) -> Response:
    fields = await asked.fields()
    said = shaped(
        shapes.AirgapRegisterRequest,
        exports=_exports(fields),
        digest=fields.one("digest"),
        challenge=fields.one("challenge"),
        signature=fields.one("signature"),
        replace=fields.ticked("replace"),
    )
    done = await asked.service.airgap_setup.register(
        said.exports, said.digest, said.challenge, said.signature, replace=said.replace
    )
    return html(render("devices/registered.html", done=done))


ROWS = (
    Row("GET", REGISTER, register, camera=True),
    Row("POST", f"{REGISTER}/keys", preview),
    Row("POST", f"{REGISTER}/challenge", challenge),
    Row("POST", REGISTER, confirm),
)
