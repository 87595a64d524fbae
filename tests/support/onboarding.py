"""A request for an organisation, as a person fills it in."""

REQUEST = {
    "first_name": "Ana", "last_name": "Prado", "work_email": "ana@example.net",
    "messaging_platform": "Signal", "messaging_handle": "ana.01", "monthly_volume": "10k-100k",
    "referral_source": "A colleague", "org_name": "Prado & Filhas", "workspace_name": "Treasury",
}  # fmt: skip
