"""What the platform, its command line and the signer share: files, text, terminals, HTTP exchange, session
secrets, pages.
"""
