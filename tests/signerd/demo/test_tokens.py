"""What the demo's token moves fits the limit of the demo's vault, and is what it says."""

from collections.abc import Iterator
from typing import cast

import pytest

from custody.client import ApiError, AsyncClient
from custody.schemas.errors import ErrorCode, Problem
from custody.schemas.vaults import Vault
from multisig.tokens import format_units, token_amount
from signerd.demo import tokens
from signerd.demo.programs import DemoFailed


def test_its_amounts_are_below_the_vault_s_limit_of_one_whole_token() -> None:
    assert format_units(token_amount(tokens.SENT), tokens.DECIMALS) == "0.40"
    assert format_units(token_amount(tokens.BURNT), tokens.DECIMALS) == "0.10"
    left = int(tokens.FIRST_SUPPLY) - tokens.SENT - tokens.BURNT
    assert format_units(token_amount(left), tokens.DECIMALS) == "999.50"


class Nobody:
    """A step of the story that is not taken."""

    async def __call__(self, *_given: object) -> str:
        raise AssertionError


def story() -> tokens.TokenSteps:
    owner, vault, nobody = cast("AsyncClient", None), cast("Vault", None), Nobody()
    return tokens.TokenSteps(owner, 1, vault, "", print, nobody, nobody, nobody)


def refusal() -> ApiError:
    return ApiError(
        Problem(
            type="about:blank",
            title="Conflict",
            status=409,
            detail="The vault's coin is not in a block yet.",
            instance="/api/v1/create-token",
            code=ErrorCode.TOKEN_COIN_MISSING,
            trace_id="t",
        )
    )


@pytest.mark.anyio
async def test_what_a_block_is_needed_for_is_asked_for_until_it_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers: Iterator[ApiError | str] = iter([refusal(), refusal(), "made", "not asked for"])

    async def propose() -> str:
        answer = next(answers)
        if isinstance(answer, ApiError):
            raise answer
        return answer

    monkeypatch.setattr(tokens, "PAUSE_SECONDS", 0)
    assert await story()._proposed("the token", propose) == "made"

    async def refuse() -> str:
        raise refusal()

    monkeypatch.setattr(tokens, "STEP_SECONDS", 0)
    with pytest.raises(DemoFailed, match="does not propose the token: The vault's coin is not in a block"):
        await story()._proposed("the token", refuse)
