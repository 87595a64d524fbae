"""Metrics in Prometheus' text format. Imported at first use, so that a daemon without monitoring does not
load the library.
"""

from collections.abc import Iterable, Iterator

from prometheus_client.core import CollectorRegistry, CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from signerd.daemon.reports import Figure

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
_Family = CounterMetricFamily | GaugeMetricFamily


class _Once(Collector):
    """The only collector of our registry: the library's default one adds metrics of the process."""

    def __init__(self, figures: Iterable[Figure]) -> None:
        self._figures = tuple(figures)

    def collect(self) -> Iterator[_Family]:
        for figure in self._figures:
            kind = CounterMetricFamily if figure.total else GaugeMetricFamily
            family = kind(figure.name, figure.text, labels=[figure.label] if figure.label else None)
            for value, count in figure.samples.items():
                family.add_metric([value] if figure.label else [], count)
            yield family


def exposition(figures: Iterable[Figure]) -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Once(figures))
    return generate_latest(registry)
