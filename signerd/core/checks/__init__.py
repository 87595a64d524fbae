"""The named checks: ``table`` has a row for each; the other modules have their functions
(docs/build/adding/check.md).
"""
