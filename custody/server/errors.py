"""The platform's errors.

The web layer maps every leaf to its HTTP status, in one table.
"""

from typing import Any, ClassVar, Self

from pydantic import ValidationError

from custody.schemas.errors import ErrorCode, FieldError, fault_sentences, fault_words

MAX_FAULTS = 20


def fault(pointer: str, detail: str, code: str = "invalid") -> FieldError:
    """One thing that is wrong with what was sent."""
    return FieldError(pointer=pointer, code=code, detail=detail)


def refused(error: ValidationError, below: str = "", sentence: str = "") -> "Invalid":
    """What a shape refused, which never repeats what was sent (P49). ``below``: the pointer of the value.
    ``sentence``: in the place of what each field's fault says.
    """
    found = error.errors(include_url=False, include_input=False)[:MAX_FAULTS]
    faults = (
        fault(below + "".join(f"/{part}" for part in each["loc"]), fault_words(each), str(each["type"]))
        for each in found
    )
    return Invalid(sentence or fault_sentences(found), faults=tuple(faults))


class Misconfigured(Exception):
    """The operator's configuration cannot be used. ``hint`` says what to do."""

    def __init__(self, sentence: str, hint: str) -> None:
        super().__init__(sentence)
        self.hint = hint


class CustodyError(Exception):
    """``code`` is stable, the sentence says what is wrong, ``hint`` what the caller can do: what the code
    advises, where the error does not know better.
    """

    code: ClassVar[ErrorCode]
    hint: str

    def __init_subclass__(cls) -> None:
        if not hasattr(cls, "hint"):
            cls.hint = cls.code.advice

    def __init__(
        self,
        detail: str,
        *,
        faults: tuple[FieldError, ...] = (),
        figures: dict[str, Any] | None = None,
        retry_after: int | None = None,
        hint: str | None = None,
    ) -> None:
        """``hint``: where it depends on where the error is raised."""
        super().__init__(detail)
        self.hint = hint or self.hint
        self.detail = detail
        self.faults = faults
        self.figures = figures
        self.retry_after = retry_after

    @classmethod
    def at(cls, pointer: str, detail: str, code: str = "invalid", *, hint: str | None = None) -> Self:
        """An error about one field of the request."""
        return cls(detail, faults=(fault(pointer, detail, code),), hint=hint)


class Unauthenticated(CustodyError):
    code = ErrorCode.UNAUTHENTICATED
    hint = "Sign in again."


class TokenExpired(CustodyError):
    code = ErrorCode.TOKEN_EXPIRED


class OtpInvalid(CustodyError):
    code = ErrorCode.OTP_INVALID


class SignInOver(OtpInvalid):
    """No code does any more, not even the right one. Told only to a caller who holds the sign-in's token."""

    hint = "Sign in again."


class PermissionDenied(CustodyError):
    code = ErrorCode.PERMISSION_DENIED
    hint = "Ask an administrator of the workspace for a role that carries the permission."


class NoRoleOpens(PermissionDenied):
    """It depends on who calls and from where, not on a permission."""

    hint = "No role changes that."


class NotOrgMember(CustodyError):
    code = ErrorCode.NOT_ORG_MEMBER
    hint = "Ask an administrator of the organisation to add you."


class NotASigner(CustodyError):
    code = ErrorCode.NOT_A_SIGNER


class KeyIsRevoked(CustodyError):
    code = ErrorCode.KEY_REVOKED


class RoleLimitExceeded(CustodyError):
    code = ErrorCode.ROLE_LIMIT_EXCEEDED


class VaultLimitExceeded(CustodyError):
    code = ErrorCode.VAULT_LIMIT_EXCEEDED


class NotInAddressBook(CustodyError):
    code = ErrorCode.NOT_IN_ADDRESS_BOOK


class NotFound(CustodyError):
    code = ErrorCode.NOT_FOUND


class StateConflict(CustodyError):
    code = ErrorCode.STATE_CONFLICT


class VaultFrozen(CustodyError):
    code = ErrorCode.VAULT_FROZEN


class SecondPersonNeeded(CustodyError):
    code = ErrorCode.SECOND_PERSON_NEEDED


class LastAdmin(CustodyError):
    code = ErrorCode.LAST_ADMIN


class TooFewSigners(CustodyError):
    """Nobody could complete what is proposed: too few of the vault's signers can still sign it."""

    code = ErrorCode.STATE_CONFLICT
    hint = (
        "Superseded keys still sign a payment into a vault of the same workspace. A signer without the "
        "permission signs again once a role carries PAYMENT_APPROVE; where makers may not approve, have "
        "another member propose it."
    )


class LockedFunds(CustodyError):
    code = ErrorCode.LOCKED_FUNDS


class KeyAlreadyActive(CustodyError):
    code = ErrorCode.KEY_ALREADY_ACTIVE


class KeyAccountsExhausted(CustodyError):
    code = ErrorCode.KEY_ACCOUNTS_EXHAUSTED


class CallNotStalled(CustodyError):
    code = ErrorCode.CALL_NOT_STALLED


class DeploymentNotConfirmed(CustodyError):
    code = ErrorCode.DEPLOYMENT_NOT_CONFIRMED


class AlreadyPaused(CustodyError):
    code = ErrorCode.ALREADY_PAUSED


class NotPaused(CustodyError):
    code = ErrorCode.NOT_PAUSED


class IdempotencyInProgress(CustodyError):
    code = ErrorCode.IDEMPOTENCY_IN_PROGRESS


class TooMuch(CustodyError):
    code = ErrorCode.BODY_TOO_LARGE


class Failed(CustodyError):
    """What nobody foresaw."""

    code = ErrorCode.INTERNAL


class Invalid(CustodyError):
    code = ErrorCode.VALIDATION


class WrongNetworkAddress(CustodyError):
    code = ErrorCode.WRONG_NETWORK_ADDRESS


class Dust(CustodyError):
    code = ErrorCode.DUST


class InsufficientFunds(CustodyError):
    code = ErrorCode.INSUFFICIENT_FUNDS


class TokenCoinMissing(CustodyError):
    """The vault has no coin at its own address that a token transaction could begin with."""

    code = ErrorCode.TOKEN_COIN_MISSING


class PsbtDiffers(CustodyError):
    code = ErrorCode.PSBT_MISMATCH


class SignatureInvalid(CustodyError):
    code = ErrorCode.BAD_SIGNATURE


class WalletAddressMismatch(CustodyError):
    code = ErrorCode.WALLET_ADDRESS_MISMATCH


class IdempotencyKeyReused(CustodyError):
    code = ErrorCode.IDEMPOTENCY_KEY_REUSED


class RateLimited(CustodyError):
    code = ErrorCode.RATE_LIMITED


class ChainUnavailable(CustodyError):
    code = ErrorCode.BACKEND_UNAVAILABLE
    hint = "The Bitcoin backend cannot be reached; nothing was changed. Try again later."


class PolicyUnavailable(CustodyError):
    code = ErrorCode.POLICY_UNAVAILABLE
    hint = "Spending policies cannot be read, so that nothing can be moved. Try again later."


class MailUnavailable(CustodyError):
    code = ErrorCode.BACKEND_UNAVAILABLE
    hint = "Nothing was mailed. Try again later."


class MailRefused(CustodyError):
    """The mail server refuses this address for good."""

    code = ErrorCode.BACKEND_UNAVAILABLE
    hint = "Ask the platform's operator: the mail server takes nothing for this address."


class ProviderUnavailable(CustodyError):
    code = ErrorCode.BACKEND_UNAVAILABLE
    hint = "Try again later, or sign in with your own password. Tell an owner of the organisation."


class IdentityRefused(CustodyError):
    """A sign-in through an identity provider, or a link with one, was refused."""

    code = ErrorCode.PERMISSION_DENIED
    hint = "Begin again, or sign in with your own password."


class DatabaseUnavailable(CustodyError):
    code = ErrorCode.BACKEND_UNAVAILABLE
    hint = "Nothing was changed. Try again later."


class Outdated(DatabaseUnavailable):
    """The process is older than the database."""

    hint = "Nothing was changed. A process of the newer version answers soon: try again."


class OutcomeUnknown(CustodyError):
    """The connection broke between a transaction's COMMIT and its answer."""

    code = ErrorCode.BACKEND_UNAVAILABLE
    hint = "Read the state before you repeat it, unless the request has an Idempotency-Key: that is safe."
