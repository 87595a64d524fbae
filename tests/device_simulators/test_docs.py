"""The tables of docs/build/devices.md are the conformance suite's own data."""

from tests.support import device_tables


def test_the_table_of_faults_is_the_fault_matrix():
    assert device_tables.faults() in device_tables.DOCS.read_text()


def test_the_table_of_situations_is_generated_from_the_transcripts():
    """`python -m tests.support.device_tables` writes it."""
    assert device_tables.situations() in device_tables.DOCS.read_text()
