"""How long things last and how often they may be tried."""

from datetime import timedelta

ACCESS_LIFETIME = timedelta(minutes=15)
REFRESH_LIFETIME = timedelta(days=30)

# Six digits, five minutes, five tries (RFC 4226, section 7.3 asks for a low bound).
OTP_LIFETIME = timedelta(minutes=5)
OTP_TRIES = 5
# Across all challenges of an account: whoever has the password gets one chance in 50,000 per hour, not more (P38).
OTP_WINDOW = timedelta(hours=1)
OTP_TRIES_PER_WINDOW = 20
OTP_MAILS_PER_WINDOW = 20

# Wrong passwords for one account, and sign-in calls from one address.
LOGIN_FAILURES = 10
LOGIN_FAILURES_WINDOW = timedelta(minutes=15)
CALLS_PER_ADDRESS = 120
CALLS_PER_ADDRESS_WINDOW = timedelta(minutes=1)
