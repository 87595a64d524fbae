"""HWI's commands that are not done here, each by its name with its reason (L5)."""

from collections.abc import Mapping
from types import MappingProxyType

_BY_ITS_OWNER = "Do it on the device itself, or with its maker's program."

REFUSED: Mapping[str, str] = MappingProxyType(
    {
        "wipe": f"a program that asks a device to forget its seed is not obeyed. {_BY_ITS_OWNER}",
        "setup": f"a seed is made where no program watches. {_BY_ITS_OWNER}",
        "restore": f"the words of a seed are typed nowhere but into the device. {_BY_ITS_OWNER}",
        "backup": f"a backup of a seed is made where no program watches. {_BY_ITS_OWNER}",
        "togglepassphrase": (
            "it changes which wallet the device opens, and whoever does not expect that finds an empty one. "
            + _BY_ITS_OWNER
        ),
        "signmessage": (
            "a signed text can be a login or a contract, and signerd has no check for either. "
            "It signs transactions, and the texts of its own platform."
        ),
        "installudevrules": "it needs root, which signerd never has. docs/devices.md says where the rules are.",
    }
)
NO_PASSWORDS = (
    "a passphrase does not belong on a command line or in another program's pipe: signerd asks for it "
    "on its page or with `signerd devices unlock`"
)


def sentence(command: str) -> str:
    return f"signerd does not do '{command}': {REFUSED[command]}"
