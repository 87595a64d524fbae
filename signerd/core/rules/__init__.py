"""The signer's own rules: each can refuse a proposal or hold it for a word more, and none can let one pass.

``values`` what a rule is · ``reading`` from ``rules.toml`` · ``spending`` what counts as spent · ``ledger`` that, from the
journal's chain · ``judge`` what the rules say of a proposal · ``replay`` what they would have said of past ones.
"""
