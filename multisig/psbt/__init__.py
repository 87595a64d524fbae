"""Partially signed transactions: version 0 (BIP-174), and version 2 (BIP-370) at the edges.

Only `embit_reader` reads them with embit.

The package keeps the fields of BIP-174 that a segwit version 0 spend uses. It skips proprietary, unknown and
taproot fields, so every field that reaches a device was parsed, shown and covered by the approval.
"""

from multisig.psbt.container import Psbt
from multisig.psbt.fields import PsbtInput, PsbtLimits, PsbtOutput
from multisig.psbt.version2 import ReceivedPsbt, to_version_2

__all__ = ["Psbt", "PsbtInput", "PsbtLimits", "PsbtOutput", "ReceivedPsbt", "to_version_2"]
