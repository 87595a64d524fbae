"""PSBTs that are brought by an app or by the person, which the platform knows nothing of."""

from signerd import shapes
from signerd.callers import Right
from signerd.loopback.api.table import By, PathId, Route, Service
from signerd.shapes.psbts import MAX_PSBT_BODY


async def inspect_psbt(service: Service, caller: By, body: shapes.PsbtRequest) -> shapes.PsbtReview:
    return await service.imported.inspect(body.psbt, caller)


async def bring_psbt(service: Service, caller: By, body: shapes.PsbtRequest) -> shapes.BroughtView:
    return await service.imported.bring(body.psbt, caller)


async def brought_psbts(service: Service, caller: By) -> tuple[shapes.BroughtLine, ...]:
    return await service.imported.all(caller)


async def brought_psbt(service: Service, caller: By, psbt_id: PathId) -> shapes.BroughtView:
    return await service.imported.one(psbt_id, caller)


async def withdraw_psbt(service: Service, caller: By, psbt_id: PathId) -> shapes.BroughtLine:
    return await service.imported.withdraw(psbt_id, caller)


ROUTES = (
    Route(
        "POST",
        "/psbts/inspect",
        inspect_psbt,
        Right.PROPOSE,
        "What signing a PSBT would do; nothing is stored",
        max_body=MAX_PSBT_BODY,
    ),
    Route(
        "POST",
        "/psbts",
        bring_psbt,
        Right.PROPOSE,
        "Bring a PSBT: the person is asked",
        max_body=MAX_PSBT_BODY,
    ),
    Route("GET", "/psbts", brought_psbts, Right.READ, "The PSBTs that the caller brought; the person's: all"),
    Route("GET", "/psbts/{psbt_id}", brought_psbt, Right.READ, "A brought PSBT, signed once it is"),
    Route("DELETE", "/psbts/{psbt_id}", withdraw_psbt, Right.PROPOSE, "Take back what was brought"),
)
