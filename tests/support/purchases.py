"""Webhook deliveries of the purchase provider."""

import json

import httpx

from custody.server.purchases import SIGNATURE_HEADER, signature_of
from custody.server.secrets import Purpose
from tests.support.platform import World

HOOK = "/webhooks/purchases"


def transaction(address: str, **changes: object) -> dict:
    """A transaction as the provider sends it, with some fields that the platform does not use."""
    return {
        "isRecurring": False,
        "id": "bda09e91-559f-4e7a-807a-cdec1a903d9d",
        "createdAt": "2026-03-01T11:58:03.640Z",
        "updatedAt": "2026-03-01T11:59:31.251Z",
        "baseCurrencyAmount": 295.45,
        "quoteCurrencyAmount": 0.00481234,
        "feeAmount": 3.99,
        "extraFeeAmount": 0,
        "networkFeeAmount": 0.56,
        "areFeesIncluded": True,
        "status": "pending",
        "walletAddress": address,
        "walletAddressTag": None,
        "cryptoTransactionId": None,
        "failureReason": None,
        "externalTransactionId": None,
        "baseCurrency": {"id": "71435a8d", "code": "eur"},
        "currency": {"id": "8d305f63", "code": "btc", "precision": 8},
        "stages": [{"stage": "stage_one_ordering", "status": "success"}],
        **changes,
    }


def deliver(
    world: World,
    data: object,
    *,
    secret: bytes | None = None,
    event: str = "transaction_updated",
    **header: str,
) -> httpx.Response:
    body = data if isinstance(data, bytes) else json.dumps({"type": event, "data": data}).encode()
    return post(world, body, header.get("header") or sign(world, body, secret))


def sign(world: World, body: bytes, secret: bytes | None = None) -> str:
    key = secret or world.platform.services.tools.secrets.of(Purpose.PURCHASE_WEBHOOK)[0]
    timestamp = str(int(world.clock.now.timestamp()))
    return f"t={timestamp},s={signature_of(key, timestamp, body)}"


def post(world: World, body: bytes, header: str) -> httpx.Response:
    headers = {SIGNATURE_HEADER: header, "Content-Type": "application/json"}
    return world.http.post(HOOK, content=body, headers=headers)
