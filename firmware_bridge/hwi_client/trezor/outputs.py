"""Which outputs HWI can tell a Trezor of. The others are refused before anybody is asked.

HWI cuts two bytes off a script that begins with OP_RETURN and calls the rest its data, whatever it is. Of two pushes, or of one
that is longer than it need be, the device makes another script: a person approves it, and a sound device's signature does not
verify (S10).

A taproot output whose key is no point of the curve can be spent by nobody (BIP-341); a Trezor One refuses it when it comes to it
("Failed to compile output").
"""

from typing import Any

from coincurve import PublicKey

from firmware_bridge.hwi_client.base import NotAvailable
from multisig import ScriptKind, classify, parse_op_return


def require_known_outputs(tx: Any) -> None:
    """:raises NotAvailable: an output is none that HWI can tell of as it stands."""
    for index, item in enumerate(tx.outputs):
        script = bytes(item.script)
        kind = classify(script)
        if kind is ScriptKind.UNKNOWN:
            raise NotAvailable(f"output {index} pays to no kind of address that the device knows")
        if kind is ScriptKind.OP_RETURN and parse_op_return(script) is None:
            raise NotAvailable(f"output {index} holds data in another form than one push of 1 to 80 bytes")
        if kind is ScriptKind.P2TR and not _is_point(script[2:]):
            raise NotAvailable(
                f"output {index} pays to a taproot key that is no point of the curve: no one could ever spend it"
            )


def _is_point(x_only: bytes) -> bool:
    try:
        PublicKey(b"\x02" + x_only)
    except ValueError:
        return False
    return True
