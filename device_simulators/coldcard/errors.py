"""What a host does wrong, each leaf answered in its own way on the wire.

VirtualColdcardError
├── BadFraming        `fram` + reason
├── CommandRefused    `err_` + sentence
├── PromptOpen        `busy`
├── PersonRefused     kept as the outcome of the request; `stok` answers `refu`
├── TransactionRefused  kept as the outcome of the request; `stok` answers `err_` + sentence
│   └── ChangeFraud   the same, under another title on the screen
├── ScriptMismatch    becomes part of such a sentence
├── PowerLost         no answer: the cable was pulled
└── IllegalStep       a bug of ours: the table of requests knows no such step
"""


class VirtualColdcardError(Exception):
    """Base of everything below. `code` is stable; `hint` says what to do."""

    code = "virtual-coldcard"
    hint = "See the message."


class BadFraming(VirtualColdcardError):
    """A packet or a message that breaks the framing; the argument is the firmware's one-word reason."""

    code = "bad-framing"
    hint = "Close the connection, open another and shake hands again."


class CommandRefused(VirtualColdcardError):
    """A command that the device understands and turns down, in the firmware's words."""

    code = "command-refused"
    hint = "Correct the command's arguments."


class PromptOpen(VirtualColdcardError):
    """A person is still being asked something else."""

    code = "prompt-open"
    hint = "Wait for the decision on the device, collect it, then try again."


class PersonRefused(VirtualColdcardError):
    """The person pressed the other button."""

    code = "person-refused"
    hint = "Nothing was signed. Start again if that was a mistake."


class TransactionRefused(VirtualColdcardError):
    """A transaction that the device will not sign, in the firmware's words."""

    code = "transaction-refused"
    hint = "Look at the transaction: the sentence says what the device objects to."
    title = "Failure"


class ChangeFraud(TransactionRefused):
    """An output that claims to come back, and does not."""

    code = "change-fraud"
    title = "Change Fraud"


class ScriptMismatch(VirtualColdcardError):
    """A script that is not one of the enrolled wallet's; the message is the firmware's."""

    code = "script-mismatch"
    hint = "Compare the enrolled wallet with the one that the transaction spends from."


class PowerLost(VirtualColdcardError):
    """The device is gone in the middle of its work, as its faults say."""

    code = "power-lost"
    hint = "Start the device again."


class IllegalStep(VirtualColdcardError):
    """An event that does not fit the state of the request."""

    code = "illegal-step"
    hint = "This is a defect of the virtual device; please report it."
