"""Devices without a cable: requests and answers as files on a card, or as QR codes."""
