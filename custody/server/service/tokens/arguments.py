"""What a call is asked with, checked: the arguments' number, order and types, and the address."""

from dataclasses import dataclass

from custody.schemas.asset_tokens import (
    CallArg,
    CallContractRequest,
    ContractWhitelistRequest,
    NumberArg,
    TextArg,
)
from custody.server.domain.errors import Fault, Invalid, WrongNetworkAddress
from multisig import InvalidAddress, Network, WrongNetwork, decode_address
from multisig.errors import InvalidToken
from multisig.tokens import Call, Function, TokenAmount

# Where the specification has them: the address first, then the amount.
ADDRESS, AMOUNT = "/args/0/value", "/args/1/value"


@dataclass(frozen=True)
class Asked:
    """A call before its contract is known on chain. ``address_at``: where in the request the address stands."""

    function: Function
    args: tuple[CallArg, ...]
    address: bytes | None
    amount: int | None
    address_at: str = ADDRESS

    def call(self, contract_id: str) -> Call:
        """Raises Invalid for an amount of zero, and for an address that cannot hold a token."""
        amount = None if self.amount is None else TokenAmount(self.amount)
        try:
            return Call(contract_id=contract_id, function=self.function, amount=amount, address=self.address)
        except InvalidToken as error:
            pointer = AMOUNT if amount == 0 else self.address_at
            raise _invalid(pointer, str(error), error.code) from error


def read_call(request: CallContractRequest, network: Network) -> Asked:
    """Raises Invalid, WrongNetworkAddress (P28)."""
    function = Function[request.function_name.upper()]
    expected = [
        kind for kind, taken in (("str", function.takes_address), ("int", function.takes_amount)) if taken
    ]
    given = [arg.type for arg in request.args]
    if given != expected:
        raise _invalid("/args", f"{function.wire_name} takes {_words(function)}.")
    texts = [arg.value for arg in request.args if isinstance(arg, TextArg)]
    numbers = [arg.value for arg in request.args if isinstance(arg, NumberArg)]
    address = read_address(texts[0], network, ADDRESS) if texts else None
    for place, recipient in enumerate(request.recipients or ()):
        read_address(recipient, network, f"/recipients/{place}")
    return Asked(function, tuple(request.args), address, numbers[0] if numbers else None)


def read_listing(request: ContractWhitelistRequest, function: Function, network: Network) -> Asked:
    """The same of the two calls with a path of their own. Raises Invalid, WrongNetworkAddress."""
    script = read_address(request.address, network, "/address")
    args = (TextArg(type="str", value=request.address),)
    return Asked(function, args, script, None, "/address")


def read_address(text: str, network: Network, pointer: str) -> bytes:
    """The output script. Raises Invalid, WrongNetworkAddress."""
    try:
        return decode_address(text, network)
    except WrongNetwork as error:
        raise WrongNetworkAddress(
            str(error), faults=(Fault(pointer, str(error), "wrong-network"),)
        ) from error
    except InvalidAddress as error:
        raise _invalid(pointer, str(error), error.code) from error


def _words(function: Function) -> str:
    match function.takes_address, function.takes_amount:
        case True, True:
            return "two arguments: a str, the address, and an int, the amount in raw units"
        case True, False:
            return "one argument: a str, the address"
        case _:
            return "no arguments"


def _invalid(pointer: str, sentence: str, code: str = "invalid") -> Invalid:
    return Invalid(sentence, faults=(Fault(pointer, sentence, code),))
