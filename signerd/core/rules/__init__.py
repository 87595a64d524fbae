"""The signer's own rules. A rule can refuse a proposal or hold it; none can allow one.

``values``: the types. ``reading``: parsing ``rules.toml``. ``spending``: what counts as spent.
``core.checks.rules`` applies rules to a proposal.
"""
