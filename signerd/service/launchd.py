"""launchd: an agent of the user's session (launchd.plist(5), launchctl(1)).

Written from the manual; not tested on macOS.
"""

import plistlib
import re

from signerd.service.manager import NAME, Service, ServicePaths

# In the output of `launchctl print` for a running job.
_RUNNING = re.compile(r"^\s*state = running$", re.MULTILINE)


def service(place: ServicePaths) -> Service:
    plist = place.home / "Library" / "LaunchAgents" / f"{NAME}.plist"
    log = str(place.home / "Library" / "Logs" / f"{NAME}.log")
    domain = f"gui/{place.uid}"
    target = f"{domain}/{NAME}"
    content = {
        "Label": NAME,
        "ProgramArguments": list(place.run),
        "RunAtLoad": True,
        # Restart after a failure, not after `stop`.
        "KeepAlive": {"SuccessfulExit": False},
        "ProcessType": "Background",
        "ExitTimeOut": 30,
        "Umask": 0o077,
        "StandardOutPath": log,
        "StandardErrorPath": log,
    }
    gone = ("launchctl", "bootout", target)
    return Service(
        manager="launchd",
        marker=plist,
        files={plist: plistlib.dumps(content)},
        before=(gone,),
        install=(("launchctl", "enable", target), ("launchctl", "bootstrap", domain, str(plist))),
        start=(("launchctl", "kickstart", target),),
        stop=(("launchctl", "kill", "SIGTERM", target),),
        uninstall=(gone,),
        ask=("launchctl", "print", target),
        running=lambda answer: answer.returncode == 0 and _RUNNING.search(answer.stdout) is not None,
    )
