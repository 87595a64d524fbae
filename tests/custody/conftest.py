"""What the platform's tests share."""

from tests.support import statements

statements.share()
