"""The named checks: ``table`` has a row for each; the other modules have what the rows run
(docs/build/adding/check.md).
"""
