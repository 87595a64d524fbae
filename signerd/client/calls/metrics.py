"""Figures."""

from signerd.client.flow import Asked
from signerd.client.method import row


class MetricCalls:
    @row("GET", "/metrics", str)
    @staticmethod
    def metrics() -> Asked:
        """As Prometheus reads them (its text format, 0.0.4)."""
        return Asked()
