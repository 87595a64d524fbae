"""The fields of a submitted form: their number is bounded, and a body that is no whole form is refused."""

import pytest

from custody.common.pages.rendering import FORM, FORM_WITH_FILE, Fields

WITH_FILE = f"{FORM_WITH_FILE}; boundary=edge"


def part(name, value):
    return b'--edge\r\nContent-Disposition: form-data; name="%b"\r\n\r\n%b\r\n' % (name, value)


def with_file(body):
    return Fields.read_with_file(WITH_FILE, body, 3)


def test_both_kinds_of_form_have_at_most_so_many_fields():
    fields, parts = b"a=1&a=1&a=1", part(b"a", b"1") * 3
    values = {"a": ["1"] * 3}
    found = with_file(part(b"a", b"1") + part(b"a", b"2") + b"--edge--")
    assert found.one("a") == "1", "of one name the first counts"
    assert Fields.read(FORM, fields, 3).values == with_file(parts + b"--edge--\r\n").values == values
    with pytest.raises(ValueError, match="fields"):
        Fields.read(FORM, fields + b"&b=1", 3)
    with pytest.raises(ValueError, match="fields"):
        with_file(parts + part(b"b", b"1") + b"--edge--\r\n")


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", None),
        (part(b"a", b"1"), "no whole form"),
        (b"before" + part(b"a", b"1") + b"--edge--", "no whole form"),
        (b"--edge\r\nContent-Disposition: form-data\r\n\r\n1\r\n--edge--", "without a name"),
        (b'--edge\r\nContent-Disposition: form-data; name="a"\r\n--edge--', "without a name"),
        (part(b"a", b"1\r\n--edge\r\n2") + b"--edge--", "without a name"),
        (part(b"a", b"1\r\n--edge--\r\n2") + b"--edge--", "without a name"),
        (part(b"a", b"\xff") + b"--edge--", "utf-8"),
        (part(b"\xff", b"1") + b"--edge--", "utf-8"),
    ],
)
def test_a_body_that_is_no_whole_form_is_refused(body, why):
    with pytest.raises(ValueError, match=why):
        with_file(body)


def test_a_boundary_counts_at_a_lines_start_alone():
    found = with_file(part(b"a", b"1 --edge-- 2\n--edge\r--edge") + b"--edge--")
    assert found.values == {"a": ["1 --edge-- 2\n--edge\r--edge"]}
