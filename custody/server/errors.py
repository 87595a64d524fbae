"""The platform's errors.

The web layer maps every leaf to its HTTP status, in one table.
"""

import re
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
    """``code`` is stable, and the one of the error's own name where it says no other; the sentence says what
    is wrong, ``hint`` what the caller can do: what the code advises, where the error does not know better.
    """

    code: ClassVar[ErrorCode]
    hint: str

    def __init_subclass__(cls) -> None:
        if not hasattr(cls, "code"):
            cls.code = ErrorCode[re.sub("(?<!^)(?=[A-Z])", "_", cls.__name__).upper()]
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
    hint = "Sign in again."


class TokenExpired(CustodyError): ...


class OtpInvalid(CustodyError): ...


class SignInOver(OtpInvalid):
    """No code does any more, not even the right one. Told only to a caller who holds the sign-in's token."""

    hint = "Sign in again."


class PermissionDenied(CustodyError):
    hint = "Ask an administrator of the workspace for a role that carries the permission."


class NoRoleOpens(PermissionDenied):
    """It depends on who calls and from where, not on a permission."""

    hint = "No role changes that."


class NotOrgMember(CustodyError):
    hint = "Ask an administrator of the organisation to add you."


class NotASigner(CustodyError): ...


class KeyIsRevoked(CustodyError):
    code = ErrorCode.KEY_REVOKED


class RoleLimitExceeded(CustodyError): ...


class VaultLimitExceeded(CustodyError): ...


class NotInAddressBook(CustodyError): ...


class NotFound(CustodyError): ...


class StateConflict(CustodyError): ...


class VaultFrozen(CustodyError): ...


class SecondPersonNeeded(CustodyError): ...


class LastAdmin(CustodyError): ...


class TooFewSigners(CustodyError):
    """Nobody could complete what is proposed: too few of the vault's signers can still sign it."""

    code = ErrorCode.STATE_CONFLICT
    hint = (
        "Superseded keys still sign a payment into a vault of the same workspace. A signer without the "
        "permission signs again once a role carries PAYMENT_APPROVE; where makers may not approve, have "
        "another member propose it."
    )


class LockedFunds(CustodyError): ...


class KeyAlreadyActive(CustodyError): ...


class KeyAccountsExhausted(CustodyError): ...


class CallNotStalled(CustodyError): ...


class DeploymentNotConfirmed(CustodyError): ...


class AlreadyPaused(CustodyError): ...


class NotPaused(CustodyError): ...


class IdempotencyInProgress(CustodyError): ...


class TooMuch(CustodyError):
    code = ErrorCode.BODY_TOO_LARGE


class Failed(CustodyError):
    """What nobody foresaw."""

    code = ErrorCode.INTERNAL


class Invalid(CustodyError):
    code = ErrorCode.VALIDATION


class WrongNetworkAddress(CustodyError): ...


class Dust(CustodyError): ...


class InsufficientFunds(CustodyError): ...


class TokenCoinMissing(CustodyError):
    """The vault has no coin at its own address that a token transaction could begin with."""


class PsbtDiffers(CustodyError):
    code = ErrorCode.PSBT_MISMATCH


class SignatureInvalid(CustodyError):
    code = ErrorCode.BAD_SIGNATURE


class WalletAddressMismatch(CustodyError): ...


class IdempotencyKeyReused(CustodyError): ...


class RateLimited(CustodyError): ...


class ChainUnavailable(CustodyError):
    code = ErrorCode.BACKEND_UNAVAILABLE
    hint = "The Bitcoin backend cannot be reached; nothing was changed. Try again later."


class PolicyUnavailable(CustodyError):
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
