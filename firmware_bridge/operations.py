"""What a driver is asked to do, and what it answers: plain values, checked where they are made, on both sides
of a worker's pipe.

    operation     arguments       answer
    probe         -               `Probed`
    fingerprint   -               the master key's fingerprint, hexadecimal
    xpubs         `Xpubs`         `Keys`
    sign          `Sign`          the device's PSBT, base64
    sign_message  `SignMessage`   the signature, base64
    enrol         `Enrol`         the proof of a registration, hexadecimal; None if the device keeps the vault
    show_address  `ShowAddress`   the address that the device has shown
    identify      -               None; the device has shown itself to the person
    unlock        -               `Unlocked`

A family's driver has no method for an operation that the family does not support.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, ClassVar, Final, Literal

from pydantic import AfterValidator, ConfigDict, Field
from pydantic.dataclasses import dataclass

from firmware_bridge.faults import clean_detail

Words = Annotated[str, AfterValidator(clean_detail)]
"""A device's own, fit for a screen."""
Fingerprint = Annotated[str, Field(pattern=r"^[0-9a-fA-F]{8}$")]
# What was refused is in no error: it may be a secret.
_CHECKED: Final = ConfigDict(hide_input_in_errors=True)


@dataclass(frozen=True, config=_CHECKED)
class PolicyText:
    """A vault or a profile. `keys`: key expressions with origins, in the order of the vault's verification
    code, whatever their order in the descriptor or a script: to a Ledger, another order is another wallet.
    `name`, `hmac` (hexadecimal): of its registration, if there is one.
    """

    kind: Literal["vault", "profile"]
    name: str
    threshold: int
    keys: tuple[str, ...]
    hmac: str | None = None

    @property
    def is_vault(self) -> bool:
        return self.kind == "vault"


@dataclass(frozen=True, config=_CHECKED)
class Xpubs:
    paths: tuple[str, ...]


@dataclass(frozen=True, config=_CHECKED)
class Sign:
    """`psbt`: base64. `payments`: how many outputs the person is asked about, if known. `resume`: an earlier
    attempt at this transaction was cut off.
    """

    psbt: str = field(repr=False)
    policy: PolicyText
    payments: int | None = None
    resume: bool = False


@dataclass(frozen=True, config=_CHECKED)
class SignMessage:
    text: str
    path: str


@dataclass(frozen=True, config=_CHECKED)
class Enrol:
    """`again`: even if the device says that it knows the vault. `file`: see `Maker.vault_file`."""

    policy: PolicyText
    again: bool = False
    file: str | None = None


@dataclass(frozen=True, config=_CHECKED)
class ShowAddress:
    policy: PolicyText
    chain: int
    index: int


# What is reported while the person decides on the device: a step (`Progress.step`) and a sentence.
CONFIRM_TRANSACTION: Final = ("confirm-transaction", "Confirm the transaction on the device")
CONFIRM_MESSAGE: Final = ("confirm-message", "Confirm the message on the device")
CONFIRM_ENROLMENT: Final = ("confirm-enrolment", "Compare the vault's details on the device and confirm")
CONFIRM_ADDRESS: Final = ("confirm-address", "Compare the address on the device")

Arguments = Xpubs | Sign | SignMessage | Enrol | ShowAddress
OPERATIONS: Final[Mapping[str, type[Arguments] | None]] = {
    "probe": None,
    "fingerprint": None,
    "xpubs": Xpubs,
    "sign": Sign,
    "sign_message": SignMessage,
    "enrol": Enrol,
    "show_address": ShowAddress,
    "identify": None,
    "unlock": None,
}


@dataclass(frozen=True, config=_CHECKED)
class Probed:
    """`model`: empty if the device does not tell. `obstacle`: the code of the `BridgeError` that keeps it
    from working, `detail` why. `firmware`: the version, as numbers with dots (a Ledger: of its Bitcoin app).
    """

    otherwise: ClassVar[str] = "it did not describe itself"

    model: Words
    label: Words | None = None
    fingerprint: Fingerprint | None = None
    obstacle: str | None = None
    detail: Words | None = None
    firmware: Words | None = None


@dataclass(frozen=True, config=_CHECKED)
class Keys:
    """`xpubs`: in the order of the paths."""

    otherwise: ClassVar[str] = "it did not return the keys it was asked for"

    fingerprint: Fingerprint
    xpubs: tuple[str, ...]


@dataclass(frozen=True, config=_CHECKED)
class Unlocked:
    """`session`: to open the device with from now on."""

    otherwise: ClassVar[str] = "it did not return its fingerprint"

    fingerprint: Fingerprint
    session: str | None = field(repr=False)
