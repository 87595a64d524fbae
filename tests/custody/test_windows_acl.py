"""Who may read a file on Windows, by its access control list in text form."""

import pytest

from custody.windows_acl import is_open_to_others, is_owned

USER = "S-1-5-21-1004336348-1177238915-682003330-1001"
OTHER = "S-1-5-21-1004336348-1177238915-682003330-1002"
# As CPython makes a folder of mode 0700, and as a file in it inherits it.
FOLDER = f"O:{USER}G:{USER}D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;FA;;;OW)"
FILE = f"O:{USER}D:AI(A;ID;FA;;;SY)(A;ID;FA;;;BA)(A;ID;FA;;;{USER})"


@pytest.mark.parametrize(
    "sddl", [FOLDER, FILE, FILE + "S:AI(ML;;NW;;;ME)", f"O:{USER}D:P", "O:BAD:(D;;FA;;;WD)"]
)
def test_what_this_user_alone_can_read(sddl):
    assert is_owned(sddl, USER)
    assert not is_open_to_others(sddl, USER)


@pytest.mark.parametrize(
    "sddl",
    [
        f"{FILE}(A;;FR;;;WD)",
        f"{FILE}(A;;FR;;;BU)",
        f"{FILE}(A;;FR;;;AU)",
        f"{FILE}(A;;FA;;;{OTHER})",
        f"{FILE}(XA;;FR;;;WD;(@User.x==1))",
        f"O:{USER}D:NO_ACCESS_CONTROL",
        f"O:{USER}",
        f"O:{USER}D:(A;;FA)",
        "",
        "no access list",
    ],
)
def test_l12_what_others_may_read_or_cannot_be_judged(sddl):
    assert is_open_to_others(sddl, USER)


@pytest.mark.parametrize("sddl", [f"O:{OTHER}D:P", "D:P", "", "O:SYD:P"])
def test_l12_what_another_user_owns(sddl):
    assert not is_owned(sddl, USER)
