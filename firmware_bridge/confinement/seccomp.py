"""seccomp: a process gives up system calls, for good: other processes, sockets, and what only an attack on
the kernel needs.

The filter is a deny list, so that a C library or a Python that makes another harmless call works. Calls newer
than the table are answered with ENOSYS, as an older kernel answers them.

Source: Documentation/userspace-api/seccomp_filter.rst, include/uapi/linux/{seccomp,filter,audit}.h, and the
tables of system calls of Linux 6.1. libseccomp is not used: its bindings on the package index are from 2021,
or bring no library (docs/adr/0025-device-workers-are-confined.md).
"""

import ctypes
import errno
import os
import platform
import struct
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from firmware_bridge.confinement.landlock import libc

# Name: number on x86_64, number on aarch64 (None: aarch64 has no such call).
_Table = Mapping[str, tuple[int, int | None]]

# Starting, driving, reading and signalling other processes. `kill` and `clone` are below.
_PROCESSES: Final[_Table] = {
    "fork": (57, None), "vfork": (58, None), "execve": (59, 221), "execveat": (322, 281),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "process_madvise": (440, 440), "process_mrelease": (448, 448), "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438), "pidfd_send_signal": (424, 424), "kcmp": (312, 272), "tkill": (200, 130),
    "setpriority": (141, 140), "ioprio_set": (251, 30), "sched_setaffinity": (203, 122),
    "sched_setscheduler": (144, 119), "sched_setparam": (142, 118), "sched_setattr": (314, 274),
    "migrate_pages": (256, 238), "move_pages": (279, 239),
}  # fmt: skip
# Changing files. Landlock does not cover owners, modes, times and attributes; and a kernel may have none.
_FILES: Final[_Table] = {
    "creat": (85, None), "mkdir": (83, None), "mkdirat": (258, 34), "rmdir": (84, None),
    "unlink": (87, None), "unlinkat": (263, 35), "rename": (82, None), "renameat": (264, 38),
    "renameat2": (316, 276), "link": (86, None), "linkat": (265, 37), "symlink": (88, None),
    "symlinkat": (266, 36), "mknod": (133, None), "mknodat": (259, 33), "truncate": (76, 45),
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "chown": (92, None),
    "lchown": (94, None), "fchown": (93, 55), "fchownat": (260, 54), "setxattr": (188, 5),
    "lsetxattr": (189, 6), "fsetxattr": (190, 7), "removexattr": (197, 14), "lremovexattr": (198, 15),
    "fremovexattr": (199, 16), "utime": (132, None), "utimes": (235, None), "futimesat": (261, None),
    "utimensat": (280, 88), "inotify_init": (253, None), "inotify_init1": (294, 26),
    "fanotify_init": (300, 262), "open_by_handle_at": (304, 265),
}  # fmt: skip
# Communicating with other processes. `socket` is below.
_IPC: Final[_Table] = {
    "socketpair": (53, 199), "listen": (50, 201), "accept": (43, 202), "accept4": (288, 242),
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "semget": (64, 190), "semop": (65, 193),
    "semtimedop": (220, 192), "semctl": (66, 191), "msgget": (68, 186), "msgsnd": (69, 189),
    "msgrcv": (70, 188), "msgctl": (71, 187), "mq_open": (240, 180), "mq_unlink": (241, 181),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
}  # fmt: skip
# The kernel itself: no device needs them, and many privilege escalations began with one.
_KERNEL: Final[_Table] = {
    "bpf": (321, 280), "userfaultfd": (323, 282), "perf_event_open": (298, 241),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "move_mount": (429, 429), "open_tree": (428, 428), "fsopen": (430, 430), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442), "unshare": (272, 97),
    "setns": (308, 268), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "kexec_load": (246, 104), "kexec_file_load": (320, 294),
    "reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225), "acct": (163, 89),
    "quotactl": (179, 60), "quotactl_fd": (443, 443), "syslog": (103, 116), "iopl": (172, None),
    "ioperm": (173, None), "modify_ldt": (154, None), "settimeofday": (164, 170),
    "clock_settime": (227, 112), "adjtimex": (159, 171), "clock_adjtime": (305, 266),
    "sethostname": (170, 161), "setdomainname": (171, 162), "vhangup": (153, 58),
    "personality": (135, 92),
}  # fmt: skip
REFUSED: Final[_Table] = {**_PROCESSES, **_FILES, **_IPC, **_KERNEL}
# Allowed with some arguments only. clone3 has its flags in memory, where no filter looks: at ENOSYS a C
# library falls back to clone.
BY_ARGUMENT: Final[_Table] = {
    "clone": (56, 220), "clone3": (435, 435), "kill": (62, 129), "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240), "prlimit64": (302, 261),
    "socket": (41, 198), "ioctl": (16, 29), "fcntl": (72, 25),
}  # fmt: skip
# The last of Linux 6.1.
LAST_KNOWN: Final = 450

# Machine (`platform.machine`): its column in the tables, its AUDIT_ARCH.
_MACHINES: Final[Mapping[str, tuple[int, int]]] = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_SECCOMP: Final = (317, 277)

_CLONE_THREAD: Final = 0x00010000
# Every CLONE_NEW…
_NAMESPACES: Final = 0x7E020000
# A signal of the caller's choice to another process, and text typed into a terminal.
_IOCTLS: Final = (0x8901, 0x8902, 0x5412, 0x541C)  # FIOSETOWN, SIOCSPGRP, TIOCSTI, TIOCLINUX
_FCNTLS: Final = (8, 10, 15)  # F_SETOWN, F_SETSIG, F_SETOWN_EX
_SOCKET_FLAGS: Final = 0o2004000  # SOCK_CLOEXEC, SOCK_NONBLOCK


@dataclass(frozen=True)
class Socket:
    """A kind of socket that may be opened; None: any."""

    family: int
    kind: int | None = None
    protocol: int | None = None


_Step = tuple[int, int, int, int]
"""An instruction of classic BPF: code, steps to jump if true, if false, constant."""
_LOAD, _AND, _RETURN = 0x20, 0x54, 0x06
_EQUAL, _ABOVE, _ANY_BIT = 0x15, 0x25, 0x45
# Where struct seccomp_data has them. Of an argument the lower half, which is all of an int.
_NUMBER, _ARCH, _ARGS = 0, 4, 16
_ALLOW: Final = (_RETURN, 0, 0, 0x7FFF0000)
_KILL: Final = (_RETURN, 0, 0, 0x80000000)


def _fail(error: int) -> _Step:
    return _RETURN, 0, 0, 0x00050000 | error


_REFUSE: Final = _fail(errno.EPERM)


def _load_argument(index: int) -> _Step:
    return _LOAD, 0, 0, _ARGS + 8 * index


def _only(index: int, values: Iterable[int]) -> list[_Step]:
    """Allow if the argument is one of these."""
    steps = [step for value in values for step in ((_EQUAL, 0, 1, value), _ALLOW)]
    return [_load_argument(index), *steps, _REFUSE]


def _not(index: int, values: Iterable[int]) -> list[_Step]:
    steps = [step for value in values for step in ((_EQUAL, 0, 1, value), _REFUSE)]
    return [_load_argument(index), *steps, _ALLOW]


def _threads_only() -> list[_Step]:
    return [
        _load_argument(0),
        (_ANY_BIT, 0, 1, _NAMESPACES),
        _REFUSE,
        (_ANY_BIT, 0, 1, _CLONE_THREAD),
        _ALLOW,
        _REFUSE,
    ]


def _sockets(allowed: Iterable[Socket]) -> list[_Step]:
    steps: list[_Step] = []
    for one in allowed:
        wanted = [[_load_argument(0)], [_load_argument(1), (_AND, 0, 0, ~_SOCKET_FLAGS & 0xFFFFFFFF)]]
        wanted.append([_load_argument(2)])
        test: list[_Step] = [_ALLOW]
        for load, value in reversed(list(zip(wanted, (one.family, one.kind, one.protocol), strict=True))):
            if value is not None:
                test = [*load, (_EQUAL, 0, len(test), value), *test]
        steps += test
    return [*steps, _REFUSE]


def _refusals(column: int) -> list[_Step]:
    numbers = (numbers[column] for numbers in REFUSED.values())
    return [step for number in numbers if number is not None for step in ((_EQUAL, 0, 1, number), _REFUSE)]


def _packed(steps: Sequence[_Step]) -> bytes:
    """Each an entry of struct sock_filter."""
    return struct.pack("=" + len(steps) * "HBBI", *chain.from_iterable(steps))


def _head(arch: int) -> list[_Step]:
    return [
        (_LOAD, 0, 0, _ARCH),
        # The calls of another architecture (32 bits) have other numbers.
        (_EQUAL, 1, 0, arch),
        _KILL,
        (_LOAD, 0, 0, _NUMBER),
        (_ABOVE, 0, 1, LAST_KNOWN),
        _fail(errno.ENOSYS),
    ]


def _by_argument(column: int, process: int, sockets: Iterable[Socket]) -> list[_Step]:
    bodies = {
        "clone": _threads_only(),
        "clone3": [_fail(errno.ENOSYS)],
        "prlimit64": _only(0, [0, process]),
        "socket": _sockets(sockets),
        "ioctl": _not(1, _IOCTLS),
        "fcntl": _not(1, _FCNTLS),
        **dict.fromkeys(("kill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"), _only(0, [process])),
    }
    steps: list[_Step] = []
    for name, body in bodies.items():
        # Each of them is on both machines.
        steps += [(_EQUAL, 0, len(body), BY_ARGUMENT[name][column] or 0), *body]
    return [*steps, _ALLOW]


def program(machine: str, process: int, sockets: Iterable[Socket]) -> list[_Step]:
    """The filter for the process of this id. :raises KeyError: no table for this machine."""
    column, arch = _MACHINES[machine]
    return [*_head(arch), *_refusals(column), *_by_argument(column, process, sockets)]


def available() -> bool:
    """Whether there is a table for this machine, and the kernel accepts filters."""
    if sys.platform != "linux" or platform.machine() not in _MACHINES or struct.calcsize("P") != 8:
        return False
    action = ctypes.c_uint32(_ALLOW[3])
    return _seccomp(2, 0, ctypes.byref(action)) == 0


def restrict(sockets: Iterable[Socket]) -> bool:
    """Filter the calls of every thread of this process. Needs `no_new_privs`. False: not available here.

    :raises OSError: the kernel refused; the process is unchanged.
    """
    if not available():
        return False
    code = _packed(program(platform.machine(), os.getpid(), sockets))
    kept = ctypes.create_string_buffer(code, len(code))
    # struct sock_fprog: a length, padding, a pointer.
    filter_ = ctypes.create_string_buffer(struct.pack("@HP", len(code) // 8, ctypes.addressof(kept)))
    for_all_threads = 1
    if _seccomp(1, for_all_threads, filter_) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error) if error else "a thread has another filter")
    return True


def _seccomp(operation: int, flags: int, args: object) -> int:
    """0, or the thread that could not be filtered, or -1 with an errno."""
    if sys.platform != "linux":
        return -1
    number = _SECCOMP[_MACHINES[platform.machine()][0]]
    return int(libc().syscall(ctypes.c_long(number), ctypes.c_uint(operation), ctypes.c_uint(flags), args))
