"""Status, and the account at the platform."""

from types import NoneType

from signerd import shapes
from signerd.client.flow import Asked
from signerd.client.method import row


class AccountCalls:
    @row("GET", "/status", shapes.Status)
    @staticmethod
    def status() -> Asked:
        return Asked()

    @row("POST", "/session", shapes.SignedIn)
    @staticmethod
    def sign_in(email: str, password: str) -> Asked:
        return Asked(body={"email": email, "password": password})

    @row("POST", "/session/code", shapes.SignedIn)
    @staticmethod
    def confirm_sign_in(code: str) -> Asked:
        return Asked(body={"code": code})

    @row("DELETE", "/session", NoneType)
    @staticmethod
    def sign_out() -> Asked:
        return Asked()
