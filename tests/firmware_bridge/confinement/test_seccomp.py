"""The filter, interpreted for both architectures, and its table compared with the system's."""

import errno
import re
import socket
from pathlib import Path

import pytest

from firmware_bridge.confinement import seccomp
from firmware_bridge.confinement.seccomp import BY_ARGUMENT, REFUSED, Socket

PROCESS = 4711
ARCHES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
COLUMNS = {"x86_64": 0, "aarch64": 1}
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}
# Numbers of read and openat.
HARMLESS = {"x86_64": (0, 257), "aarch64": (63, 56)}
ALLOW, KILL, REFUSE = 0x7FFF0000, 0x80000000, 0x00050000 | errno.EPERM
MISSING = 0x00050000 | errno.ENOSYS
THREAD = 0x3D0F00
UEVENT = Socket(16, protocol=15)


def verdict(program, arch, number, args=()):
    """What the kernel's machine for classic BPF returns (Documentation/networking/filter.rst)."""
    data = {0: number, 4: arch, **{16 + 8 * index: value & 0xFFFFFFFF for index, value in enumerate(args)}}
    at = accumulator = 0
    while True:
        code, if_true, if_false, constant = program[at]
        at += 1
        match code:
            case 0x20:
                accumulator = data[constant]
            case 0x54:
                accumulator &= constant
            case 0x06:
                return constant
            case 0x15:
                at += if_true if accumulator == constant else if_false
            case 0x25:
                at += if_true if accumulator > constant else if_false
            case 0x45:
                at += if_true if accumulator & constant else if_false
            case _:
                raise AssertionError(f"no such instruction: {code:#x}")


@pytest.fixture(params=ARCHES)
def machine(request):
    return request.param


@pytest.fixture
def judge(machine):
    def judge(name, *args, sockets=()):
        program = seccomp.program(machine, PROCESS, sockets)
        number = {**REFUSED, **BY_ARGUMENT}[name][COLUMNS[machine]] if isinstance(name, str) else name
        return verdict(program, ARCHES[machine], number, args)

    return judge


def test_each_call_of_the_table_is_refused(machine, judge):
    for name, numbers in REFUSED.items():
        if numbers[COLUMNS[machine]] is not None:
            assert judge(name) == REFUSE, name


def test_what_is_not_in_the_table_is_allowed(machine, judge):
    for number in HARMLESS[machine]:
        assert judge(number) == ALLOW


def test_the_calls_of_another_architecture_end_the_process(machine):
    program = seccomp.program(machine, PROCESS, ())
    assert verdict(program, 0x40000003, 1) == KILL


UDP = (Socket(2, 2), Socket(10, 2))
SIGNALS = ("kill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        # Newer calls look missing; and x32's, which are other numbers for the same calls.
        *((name, (0, 0), MISSING) for name in (seccomp.LAST_KNOWN + 1, 0x40000000 | 57, "clone3")),
        # A thread starts; a fork, a vfork, a thread in a new network and a new control group do not.
        ("clone", (THREAD,), ALLOW),
        *(("clone", (flags,), REFUSE) for flags in (0x11, 0x4111, THREAD | 0x40000000, 0x02000000)),
        # Only the process itself is signalled.
        *((name, (PROCESS,), ALLOW) for name in SIGNALS),
        *((name, (other,), REFUSE) for name in SIGNALS for other in (1, 0, -1, -PROCESS, PROCESS + 1)),
        *(("prlimit64", (process,), ALLOW) for process in (0, PROCESS)),
        ("prlimit64", (1,), REFUSE),
        # Descriptors send no signals and type nothing; USBDEVFS_SUBMITURB and TCGETS are a device's.
        *(("fcntl", (3, command), REFUSE) for command in (8, 10, 15)),
        *(("fcntl", (3, command), ALLOW) for command in (1, 2)),
        *(("ioctl", (3, request), REFUSE) for request in (0x5412, 0x8901)),
        *(("ioctl", (3, request), ALLOW) for request in (0x8038550A, 0x5401)),
    ],
)
def test_by_its_arguments_a_call_is_allowed_refused_or_missing(judge, name, args, expected):
    assert judge(name, *args) == expected


@pytest.mark.parametrize(
    ("sockets", "asked", "expected"),
    [
        ((), (socket.AF_UNIX, socket.SOCK_DGRAM, 0), REFUSE),
        ((UEVENT,), (16, 3 | 0o2004000, 15), ALLOW),
        ((UEVENT,), (16, 3, 0), REFUSE),
        ((UEVENT,), (socket.AF_INET, socket.SOCK_STREAM, 0), REFUSE),
        (UDP, (10, 2 | 0o2000000, 17), ALLOW),
        (UDP, (2, 1, 6), REFUSE),
        ((Socket(1, 2),), (1, 1, 0), REFUSE),
    ],
)
def test_sockets(judge, sockets, asked, expected):
    assert judge("socket", *asked, sockets=sockets) == expected


def test_the_numbers_are_the_systems(machine):
    header = HEADERS[machine]
    if not header.exists():
        pytest.skip("the kernel's headers are not installed")
    told = dict(re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", header.read_text()))
    for name, numbers in {**REFUSED, **BY_ARGUMENT}.items():
        number = numbers[COLUMNS[machine]]
        assert (told.get(name) if number is not None else None) == (None if number is None else str(number))
