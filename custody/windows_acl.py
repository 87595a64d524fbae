"""Who may read a file on Windows: its owner and its access list, as the text that the system makes of them
(SDDL: [MS-DTYP] 2.5.1).

The decision is on text and runs everywhere. The calls of Windows were written from its manual and were not
run there.
"""

import re
import sys
from pathlib import Path
from typing import Final

# The system, the machine's administrators, the owner, the creator: they can read any file of a user anyway.
_NO_OTHERS: Final = frozenset({"SY", "BA", "OW", "CO", "S-1-5-18", "S-1-5-32-544", "S-1-3-4", "S-1-3-0"})
_PARTS: Final = re.compile(
    r"O:(?P<owner>S-[0-9-]+|[A-Z]{2})?(?:G:(?:S-[0-9-]+|[A-Z]{2}))?"
    r"D:(?P<flags>[A-Z_]*)(?P<entries>(?:\([^()]*\))*)(?:S:.*)?"
)
_ENTRY: Final = re.compile(r"\(([^()]*)\)")
_FIELDS: Final = 6
# Those that take rights away.
_DENIALS: Final = frozenset({"D", "OD", "XD"})


def is_owned(sddl: str, user: str) -> bool:
    """``user``: the SID of this process's user. What one administrator makes belongs to all of them."""
    found = _PARTS.fullmatch(sddl)
    return found is not None and found["owner"] in {user, "BA", "S-1-5-32-544"}


def is_open_to_others(sddl: str, user: str) -> bool:
    """Whether anyone but this user and the machine's administrators may do anything with it. What is not
    understood counts as a yes.
    """
    found = _PARTS.fullmatch(sddl)
    # No list at all lets every user in; an empty one none.
    if found is None or "NO_ACCESS_CONTROL" in found["flags"]:
        return True
    return any(_admits(entry, user) for entry in _ENTRY.findall(found["entries"]))


def _admits(entry: str, user: str) -> bool:
    fields = entry.split(";")
    if len(fields) < _FIELDS:
        return True
    return fields[0] not in _DENIALS and fields[5] not in _NO_OTHERS | {user}


if sys.platform == "win32":
    import ctypes
    from ctypes import wintypes

    _FILE_OBJECT, _OWNER_AND_ACCESS, _REVISION = 1, 1 | 4, 1
    _TOKEN_QUERY, _TOKEN_USER = 8, 1

    def sddl_of(path: Path) -> str:
        """Raises OSError."""
        advapi, descriptor, text = ctypes.WinDLL("advapi32"), ctypes.c_void_p(), wintypes.LPWSTR()
        failed = advapi.GetNamedSecurityInfoW(
            str(path), _FILE_OBJECT, _OWNER_AND_ACCESS, None, None, None, None, ctypes.byref(descriptor)
        )
        if failed:
            raise ctypes.WinError(failed)
        try:
            written = advapi.ConvertSecurityDescriptorToStringSecurityDescriptorW(
                descriptor, _REVISION, _OWNER_AND_ACCESS, ctypes.byref(text), None
            )
            return _taken(text, written)
        finally:
            _free(descriptor)

    def user_sid() -> str:
        """Raises OSError."""
        advapi, kernel = ctypes.WinDLL("advapi32"), ctypes.WinDLL("kernel32")
        kernel.GetCurrentProcess.restype = wintypes.HANDLE
        token, size, text = wintypes.HANDLE(), wintypes.DWORD(), wintypes.LPWSTR()
        process = wintypes.HANDLE(kernel.GetCurrentProcess())
        if not advapi.OpenProcessToken(process, _TOKEN_QUERY, ctypes.byref(token)):
            raise ctypes.WinError()
        try:
            advapi.GetTokenInformation(token, _TOKEN_USER, None, 0, ctypes.byref(size))
            found = ctypes.create_string_buffer(size.value)
            if not advapi.GetTokenInformation(token, _TOKEN_USER, found, size, ctypes.byref(size)):
                raise ctypes.WinError()
            # TOKEN_USER begins with a pointer to the SID.
            sid = ctypes.cast(found, ctypes.POINTER(ctypes.c_void_p)).contents
            return _taken(text, advapi.ConvertSidToStringSidW(sid, ctypes.byref(text)))
        finally:
            kernel.CloseHandle(token)

    def _taken(text: wintypes.LPWSTR, written: int) -> str:
        if not written or text.value is None:
            raise ctypes.WinError()
        try:
            return str(text.value)
        finally:
            _free(text)

    def _free(memory: ctypes.c_void_p | wintypes.LPWSTR) -> None:
        ctypes.WinDLL("kernel32").LocalFree(memory)

else:

    def sddl_of(path: Path) -> str:
        """Raises OSError."""
        raise OSError(f"{path} has no access list of Windows here")

    def user_sid() -> str:
        """Raises OSError."""
        raise OSError("users have no SID here")
