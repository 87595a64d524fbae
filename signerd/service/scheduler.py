"""Windows' Task Scheduler: a task of this user, started at sign-in (schtasks /create /xml; MS-TSCH, 2.5).

Written from the manual; not tested on Windows.
"""

import csv
from xml.etree import ElementTree as ET

from signerd.service.manager import NAME, Answer, Place, Service

NAMESPACE = "http://schemas.microsoft.com/windows/2004/02/mit/task"
# SCHED_S_TASK_RUNNING, 0x41301: unlike its name, the number is not localised.
_RUNNING = "267009"


def service(place: Place) -> Service:
    xml = place.state / "service.xml"
    named = ("/tn", NAME)
    return Service(
        manager="Task Scheduler",
        marker=xml,
        files={xml: task(place)},
        install=(("schtasks", "/create", *named, "/xml", str(xml), "/f"), ("schtasks", "/run", *named)),
        start=(("schtasks", "/run", *named),),
        stop=(("schtasks", "/end", *named),),
        uninstall=(("schtasks", "/delete", *named, "/f"),),
        ask=("schtasks", "/query", *named, "/v", "/fo", "csv", "/nh"),
        running=_runs,
    )


def task(place: Place) -> bytes:
    """The task's XML, in UTF-16 for schtasks."""
    root = ET.Element("Task", {"version": "1.2", "xmlns": NAMESPACE})
    _add(root, "RegistrationInfo/Description", "Approve multisig spends on your own signing device")
    # Without a user it would run at any sign-in, which needs an administrator.
    _add(root, "Triggers/LogonTrigger/UserId", place.user)
    principal = _add(root, "Principals/Principal")
    principal.set("id", "user")
    _add(principal, "UserId", place.user)
    _add(principal, "LogonType", "InteractiveToken")
    _add(principal, "RunLevel", "LeastPrivilege")
    for name, value in (
        ("MultipleInstancesPolicy", "IgnoreNew"),
        ("DisallowStartIfOnBatteries", "false"),
        ("StopIfGoingOnBatteries", "false"),
        # No limit.
        ("ExecutionTimeLimit", "PT0S"),
        ("RestartOnFailure/Interval", "PT1M"),
        ("RestartOnFailure/Count", "5"),
    ):
        _add(root, f"Settings/{name}", value)
    actions = _add(root, "Actions")
    actions.set("Context", "user")
    program, *arguments = place.run
    _add(actions, "Exec/Command", program)
    _add(actions, "Exec/Arguments", _line(arguments))
    text: bytes = ET.tostring(root, encoding="utf-16", xml_declaration=True)
    return text


def _add(below: ET.Element, path: str, text: str | None = None) -> ET.Element:
    """Set the text of the element at this path; missing elements are created."""
    for name in path.split("/"):
        found = below.find(name)
        below = ET.SubElement(below, name) if found is None else found
    below.text = text
    return below


def _line(words: list[str]) -> str:
    from subprocess import list2cmdline

    return list2cmdline(words)


def _runs(answer: Answer) -> bool:
    return answer.status == 0 and any(_RUNNING in row for row in csv.reader(answer.output.splitlines()))
