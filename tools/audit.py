"""Known weaknesses of what is locked: `python -m tools.audit PIP_AUDIT [--release]`.

PIP_AUDIT asks PyPI's database about both lock files. What it knows and lock/exceptions.toml does not have is
a failure, and so is an exception that applies no more. A release also fails on what was not asked, and on an
exception that nobody has read again for 90 days.
"""

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LOCKS = ("lock/desktop.txt", "lock/server.txt")
EXCEPTIONS = ROOT / "lock" / "exceptions.toml"
MOST_DAYS = 90
SECONDS = 600


@dataclass(frozen=True)
class Weakness:
    """Excepted, of these versions of a package. ``date``: when somebody last read the reason."""

    package: str
    versions: SpecifierSet
    id: str
    reason: str
    date: date

    def covers(self, package: str, version: str) -> bool:
        return canonicalize_name(package) == self.package and version in self.versions


def exceptions_of(text: str) -> tuple[Weakness, ...]:
    """Raises KeyError and TypeError where one of its five fields is missing, or is another."""
    return tuple(
        Weakness(**{**each, "versions": SpecifierSet(each["versions"])})
        for each in tomllib.loads(text)["exception"]
    )


def locked_in(text: str) -> Iterator[tuple[str, str]]:
    """Packages and versions of a lock file, for whatever interpreter each line is."""
    for line in text.splitlines():
        if "==" in line and not line.startswith((" ", "#")):
            wanted = Requirement(line.removesuffix("\\"))
            yield wanted.name, next(iter(wanted.specifier)).version


def faults_of(
    answer: Mapping[str, Any], exceptions: Sequence[Weakness], locked: Sequence[tuple[str, str]]
) -> Iterator[str]:
    """``answer``: pip-audit's JSON."""
    seen: set[Weakness] = set()
    told = set()
    for package in answer["dependencies"]:
        if "skip_reason" in package:
            continue
        name, version = package["name"], package["version"]
        of_it = [each for each in exceptions if each.covers(name, version)]
        told.update(of_it)
        for found in package["vulns"]:
            ids = {found["id"], *found["aliases"]}
            excepted = [each for each in of_it if each.id in ids]
            seen.update(excepted)
            if not excepted:
                fixed = ", ".join(found["fix_versions"]) or "no version"
                yield f"{name} {version} has {', '.join(sorted(ids))}, fixed in {fixed}."
    for each in exceptions:
        what = f"The exception of {each.package} {each.versions}, {each.id}, applies no more"
        if not any(each.covers(*pair) for pair in locked):
            yield f"{what}: no such version is locked."
        elif each in told and each not in seen:
            yield f"{what}: the database does not have it."


def not_asked(answer: Mapping[str, Any]) -> list[str]:
    return [each["name"] for each in answer["dependencies"] if "skip_reason" in each]


def too_old(exceptions: Sequence[Weakness], today: date) -> Iterator[str]:
    for each in exceptions:
        if (days := (today - each.date).days) > MOST_DAYS:
            yield f"The exception of {each.package}, {each.id}, is {days} days old: read and date it."


def asked(pip_audit: str) -> dict[str, Any] | str:
    """The tool's answer; or why there is none."""
    command = [
        pip_audit,
        "--require-hashes",
        "--disable-pip",
        "--format",
        "json",
        "--progress-spinner",
        "off",
    ]
    command += [part for lock in LOCKS for part in ("-r", lock)]
    try:
        ended = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        answer: dict[str, Any] = json.loads(ended.stdout)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    except ValueError:
        return ended.stderr.strip().rpartition("\n")[2] or f"pip-audit ended with {ended.returncode}"
    return answer


def main(pip_audit: str, *flags: str) -> int:
    is_release = "--release" in flags
    exceptions = exceptions_of(EXCEPTIONS.read_text())
    locked = [pair for lock in LOCKS for pair in locked_in((ROOT / lock).read_text())]
    answer = asked(pip_audit)
    if isinstance(answer, str):
        print(f"Not asked: {answer}")
        answer, missing = {"dependencies": []}, True
    else:
        names = not_asked(answer)
        missing = bool(names)
        if names:
            print(f"Not asked, for the database did not answer: {', '.join(names)}")
    faults = list(faults_of(answer, exceptions, locked))
    if is_release:
        faults += too_old(exceptions, datetime.now(UTC).date())
    for fault in faults:
        print(fault)
    return int(bool(faults) or (is_release and missing))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
