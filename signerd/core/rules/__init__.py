"""The signer's own rules: a rule can refuse a proposal or hold it for an acknowledgement, and none can let
one pass.

``values``: what a rule is. ``reading``: rules from ``rules.toml``. ``spending``: what counts as spent, and
the ledger that reads it from the audit chain. ``core.checks.rules`` applies rules to a proposal,
``core.replay`` to past ones.
"""
