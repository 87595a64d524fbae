"""The wire shapes of the custody platform, one file per section of its specification.

Both the client and the server import these: a field's name and type stand here and nowhere else.
"""
