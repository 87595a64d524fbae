"""What a vault holds of tokens, in the platform's words."""

from starlette.responses import Response

from signerd.loopback.page.asked import Asked
from signerd.loopback.page.table import Row
from signerd.loopback.page.vaults import vault_of


async def tokens(asked: Asked) -> Response:
    view = await vault_of(asked)
    found = await asked.service.tokens.of_vault(view.vault_id)
    return await asked.page(
        "vaults/tokens.html", title=f"Tokens of {view.name}", here="/vaults", vault=view, found=found
    )


ROWS = (Row("GET", "/vaults/{vault_id}/tokens", tokens),)
