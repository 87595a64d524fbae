"""Vaults and their pins."""

from signerd import shapes
from signerd.callers import Right
from signerd.loopback.api.table import By, PathId, Route, Service


async def vaults(service: Service, caller: By) -> tuple[shapes.VaultView, ...]:
    """Whoever knows all keys of a vault can derive all of its addresses: they are for those who may read keys."""
    found = await service.vaults(sparing=caller.app_id is not None)
    if Right.XPUB in caller.rights:
        return found
    return tuple(vault.model_copy(update={"cosigners": ()}) for vault in found)


async def preview_pin(
    service: Service, vault_id: PathId, body: shapes.PinPreviewRequest
) -> shapes.PinPreview:
    return await service.preview_pin(vault_id, body.brought)


async def pin(service: Service, vault_id: PathId, body: shapes.PinRequest) -> shapes.VaultView:
    return await service.pin(
        vault_id, body.code, brought=body.brought, without_device_address=body.without_device_address
    )


async def unpin(service: Service, vault_id: PathId, body: shapes.UnpinRequest) -> shapes.VaultView:
    return await service.unpin(vault_id, body.code)


async def tokens(service: Service, vault_id: PathId) -> shapes.VaultTokens:
    """Asked of the platform each time: it is the person's to ask."""
    return await service.tokens.of_vault(vault_id)


ROUTES = (
    Route("GET", "/vaults", vaults, Right.READ, "The vaults that the platform shows, pinned or not"),
    Route(
        "GET",
        "/vaults/{vault_id}/tokens",
        tokens,
        Right.PERSON,
        "What the platform says of a vault's tokens and calls",
    ),
    Route(
        "POST",
        "/vaults/{vault_id}/pin/preview",
        preview_pin,
        Right.PERSON,
        "What to compare before pinning a vault",
    ),
    Route("POST", "/vaults/{vault_id}/pin", pin, Right.PERSON, "Pin a vault by its verification code"),
    Route(
        "POST",
        "/vaults/{vault_id}/unpin",
        unpin,
        Right.PERSON,
        "Forget a pinned vault, by the code it was pinned under",
    ),
)
