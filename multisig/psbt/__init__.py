"""Partially signed transactions, version 0 (BIP-174). embit is known to `embit_reader` alone.

What is kept: the fields of BIP-174 that a segwit version 0 spend uses. Proprietary, unknown and taproot fields
are read over and dropped, so that whatever leaves this package was understood, shown and bound by the
approval; nothing opaque is carried to a device.
"""

from multisig.psbt.container import Psbt
from multisig.psbt.fields import PsbtLimits
from multisig.psbt.model import PsbtInput, PsbtOutput

__all__ = ["Psbt", "PsbtInput", "PsbtLimits", "PsbtOutput"]
