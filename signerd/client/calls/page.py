"""The way to the page."""

from signerd import shapes
from signerd.client.flow import Asked
from signerd.client.method import row


class PageCalls:
    @row("POST", "/page/entry", shapes.PageEntry)
    @staticmethod
    def enter_page() -> Asked:
        """A code to enter the page with, good once and for half a minute. Over the private socket alone."""
        return Asked()
