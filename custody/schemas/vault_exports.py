"""A vault as other wallets import it."""

from typing import Literal

from custody.schemas.common import (
    Label,
    Prose,
    Request,
    Shape,
    TextId,
)
from custody.schemas.queries import QueryId

# A descriptor (BIP-380, BIP-389), or a descriptor record of BIP-129.
ExportForm = Literal["descriptor", "bsms"]


class VaultExportQuery(Request):
    """``GET /api/v1/vault-export``."""

    workspace_id: QueryId
    vault_id: TextId
    format: ExportForm = "descriptor"


class VaultExport(Shape):
    """``verification_code`` is what the vault's signers read to each other."""

    vault_id: Label
    name: Label
    format: ExportForm
    text: Prose
    verification_code: Label
