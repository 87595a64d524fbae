"""The folder of mails."""

from email import message_from_bytes
from email.policy import default
from pathlib import Path

import pytest

from custody.server.domain.errors import MailRefused, MailUnavailable
from custody.server.service.mail.mailer import FileMailer, Mail
from tests.support.platform import Clock


@pytest.fixture
def mailer(tmp_path: Path) -> FileMailer:
    numbers = iter(range(1_000))
    return FileMailer(tmp_path / "mail", Clock(), lambda count: next(numbers).to_bytes(count, "little"))


def test_each_message_is_a_private_file(mailer: FileMailer, tmp_path: Path) -> None:
    for number in range(3):
        mailer.send(Mail("a@example.org", f"Subject {number}", "Text with a code 123456\nand Umlaute: äöü\n"))
    files = sorted((tmp_path / "mail").iterdir())
    assert [path.suffix for path in files] == [".eml"] * 3
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert (tmp_path / "mail").stat().st_mode & 0o777 == 0o700
    message = message_from_bytes(files[0].read_bytes(), policy=default)
    assert message["To"] == "a@example.org"
    assert message["Subject"] == "Subject 0"
    assert "code 123456" in message.get_content()
    assert "äöü" in message.get_content()


def test_a_link_can_be_copied_from_the_file(mailer: FileMailer, tmp_path: Path) -> None:
    line = "Go on at https://custody.example.org/reset-password#token=HLVk438ZjvnViqvpjex7rG0_WZLCMIWj9hvQlHXQO3c now."
    mailer.send(Mail("a@example.org", "Subject", f"{line}\n"))
    (written,) = (tmp_path / "mail").iterdir()
    assert line in written.read_text(encoding="ascii").splitlines()


def test_a_line_too_long_for_a_mail_is_encoded(mailer: FileMailer, tmp_path: Path) -> None:
    mailer.send(Mail("a@example.org", "Subject", "x" * 999))
    (written,) = (tmp_path / "mail").iterdir()
    assert max(map(len, written.read_bytes().splitlines())) <= 998
    assert message_from_bytes(written.read_bytes(), policy=default).get_content().strip() == "x" * 999


@pytest.mark.parametrize("to", ["a@b", '"@b', "<a@b", "a,c@b", "ä@ö", "a@b>,c@d", "a:;@b", "=?utf-8?q?x?=@b"])
def test_an_address_is_never_a_second_header(mailer: FileMailer, tmp_path: Path, to: str) -> None:
    """P50: whatever passes the shape of an address is written, and stays in its header."""
    mailer.send(Mail(to, "Subject", "Text\n"))
    (written,) = (tmp_path / "mail").iterdir()
    message = message_from_bytes(written.read_bytes(), policy=default)
    assert sorted(set(message.keys())) == sorted([
        "From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "Content-Type",
        "Content-Transfer-Encoding", "MIME-Version",
    ])  # fmt: skip


@pytest.mark.parametrize("to", ["a@%|,<", "a@[f\xad.&\\("])
def test_an_address_that_the_library_stumbles_over_is_refused(mailer: FileMailer, to: str) -> None:
    """P50: it has the shape of an address, and email.headerregistry answers it with an IndexError or AttributeError."""
    with pytest.raises(MailRefused):
        mailer.send(Mail(to, "Subject", "Text\n"))


def test_a_code_stays_out_of_repr() -> None:
    """P49."""
    assert "123456" not in repr(Mail("a@example.org", "Subject", "code 123456"))


def test_a_folder_that_is_gone_is_no_crash(mailer: FileMailer, tmp_path: Path) -> None:
    (tmp_path / "mail").rmdir()
    with pytest.raises(MailUnavailable, match="cannot be written"):
        mailer.send(Mail("a@example.org", "Subject", "Text\n"))


def test_what_no_header_can_hold_is_refused(mailer: FileMailer, tmp_path: Path) -> None:
    """P50."""
    with pytest.raises(MailRefused):
        mailer.send(Mail("a@example.org", "Subject\r\nBcc: everybody@example.org", "Text\n"))
    assert list((tmp_path / "mail").iterdir()) == []
