"""The bare database behind the same server: the least that a route with a shape to check and a handler to wait for can be.

No token, no trace, no log, no meter. What HTTP takes by itself is then in both, and what is left is the platform's.
"""

from base64 import b64encode

from fastapi import FastAPI

from benchmarks.custody.bare import Bare
from custody.schemas.proposals import (
    CreatePsbtRequest,
    CreatePsbtResponse,
    ProposalStatus,
    SignPsbtRequest,
    SignPsbtResponse,
)

CREATE = "/create-psbt"
# By which of two approvals it is. A body names a proposal of the platform's, which stands for one of the bare database's own.
SIGN = ("/sign-psbt/first", "/sign-psbt/second")


def bare_asgi(bare: Bare) -> FastAPI:
    """For the platform's own bodies. Whoever approves has proposed as often: first approvals before second ones."""
    app, approved = FastAPI(), list[str]()
    psbt = b64encode(bare.psbt).decode()

    @app.get("/health")
    def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.post(CREATE)
    def create(_asked: CreatePsbtRequest) -> CreatePsbtResponse:
        return CreatePsbtResponse(psbt_id=bare.propose(), psbt_base64=psbt)

    def answer(one: str, status: ProposalStatus) -> SignPsbtResponse:
        return SignPsbtResponse(psbt_id=one, status=status, collected_signatures=1, required_signatures=2)

    @app.post(SIGN[0])
    def first(_asked: SignPsbtRequest) -> SignPsbtResponse:
        one = bare.ids.pop()
        bare.approve(one, 0)
        approved.append(one)
        return answer(one, ProposalStatus.PENDING)

    @app.post(SIGN[1])
    def second(_asked: SignPsbtRequest) -> SignPsbtResponse:
        one = approved.pop()
        bare.approve(one, 1)
        return answer(one, ProposalStatus.SIGNED)

    return app
