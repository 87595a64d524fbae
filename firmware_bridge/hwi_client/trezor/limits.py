"""What a model is known to refuse, so that it is said in plain words before anything is sent. As data, with its source."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from firmware_bridge.hwi_client.base import NotAvailable


@dataclass(frozen=True)
class Limits:
    """None: no limit is known."""

    message_bytes: int | None = None
    inputs: int | None = None


_NONE: Final = Limits()
# By the model's name on the wire. legacy/v1.14.1: SignMessage.message in protob/messages-bitcoin.options ("bytes overflow"),
# MAX_INPUTS_COUNT in signing.c ("Too many inputs.").
_LIMITS: Final[Mapping[str, Limits]] = {"1": Limits(message_bytes=1024, inputs=512)}


def limits_of(model: str | None) -> Limits:
    return _LIMITS.get(model or "1", _NONE)


def require_short(message: bytes, limits: Limits) -> None:
    """:raises NotAvailable: the message is longer than the model takes."""
    most = limits.message_bytes
    if most is not None and len(message) > most:
        raise NotAvailable(
            f"this model signs messages of up to {most:,} bytes, and this one has {len(message):,}"
        )


def require_few_inputs(tx: Any, limits: Limits) -> None:
    """:raises NotAvailable: the transaction has more inputs than the model takes."""
    most = limits.inputs
    if most is not None and len(tx.inputs) > most:
        raise NotAvailable(
            f"this model signs transactions of up to {most} inputs, and this one has {len(tx.inputs)}"
        )
