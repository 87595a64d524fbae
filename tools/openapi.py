"""Prints an OpenAPI document: ``python -m tools.openapi loopback`` (signerd's) or ``platform``."""

import json
import sys

from custody.server.cli.serving import openapi_command
from signerd.endpoint import PREFIX
from signerd.loopback.answers import ROUTES
from signerd.loopback.description import describe


def main(name: str) -> None:
    if name == "platform":
        openapi_command.main(args=[], standalone_mode=False)
    else:
        sys.stdout.write(json.dumps(describe(ROUTES, PREFIX), indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
