"""A publisher of advisories: keys, lists, rotations."""

from dataclasses import dataclass, field
from hashlib import sha256

from coincurve import PrivateKey

from custody.advisories import AdvisoryList, PublisherKey, sign
from tests.support.custody import Desk

AUX = bytes(32)
NO_DAYS = {"from": None, "before": None}


def affected(maker: str = "coldcard", **changes) -> dict:
    return {"maker": maker, "models": [], "firmware": [], "made": NO_DAYS} | changes


def entry(name: str = "COLDCARD-2026-07", *where: dict, **changes) -> dict:
    return {
        "id": name,
        "severity": "stop-using",
        "text": "A seed that this firmware made can be guessed.",
        "advice": "Move the money to vaults without this key.",
        "sources": ["https://example.org/entropy"],
        "affected": list(where) or [affected()],
        "drill": False,
    } | changes


def secret(number: int) -> bytes:
    return sha256(f"publisher {number}".encode()).digest()


def public(secret: bytes) -> str:
    return PrivateKey(secret).public_key_xonly.format().hex()


@dataclass
class Publisher:
    """``secrets``: one for each epoch, the current one last."""

    secrets: list[bytes] = field(default_factory=lambda: [secret(1)])

    @property
    def root(self) -> str:
        return public(self.secrets[0])

    @property
    def keys(self) -> list[PublisherKey]:
        chain = [PublisherKey(epoch=1, key=self.root)]
        for epoch, (before, after) in enumerate(zip(self.secrets, self.secrets[1:], strict=False), start=2):
            unsigned = PublisherKey(epoch=epoch, key=public(after))
            signature = sign(before, unsigned.message(public(before)), AUX)
            chain.append(unsigned.model_copy(update={"signature": signature}))
        return chain

    def list(self, serial: int, *entries: dict, **changes) -> AdvisoryList:
        said = {
            "format": 1,
            "serial": serial,
            "issued": "2026-02-01T00:00:00Z",
            "expires": "2027-02-01T00:00:00Z",
            "advisories": list(entries),
            "keys": [key.model_dump() for key in self.keys],
        }
        return AdvisoryList.model_validate(said | changes).signed(self.secrets[-1], AUX)


def trust(desk: Desk, *roots: str) -> None:
    """As a platform started with these keys in ``CUSTODY_ADVISORY_KEYS``."""
    desk.world.platform.services.advisories._in_force.trusted = frozenset(roots)
