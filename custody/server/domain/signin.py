"""How long things last and how often they may be tried."""

from datetime import timedelta

ACCESS_LIFETIME = timedelta(minutes=15)
REFRESH_LIFETIME = timedelta(days=30)

# Six digits, five minutes, five tries (RFC 4226, section 7.3 asks for a low bound), mailed or of an authenticator.
OTP_LIFETIME = timedelta(minutes=5)
OTP_TRIES = 5
# Across all challenges of an account: whoever has the password gets one chance in 50,000 per hour with mailed codes, and
# one in 16,667 with an authenticator's, of which three are good at a time; not more (P38).
OTP_WINDOW = timedelta(hours=1)
OTP_TRIES_PER_WINDOW = 20
OTP_CHALLENGES_PER_WINDOW = 20

# A mailed link to a new password: once, for an hour (OWASP, Forgot Password Cheat Sheet), five of them.
RESET_LIFETIME = timedelta(hours=1)
RESETS_PER_ACCOUNT = 5
RESETS_PER_ACCOUNT_WINDOW = timedelta(hours=1)

# Registrations of one address: each is a mail to somebody who may not have asked for it.
REGISTRATIONS = 5
REGISTRATIONS_WINDOW = timedelta(hours=1)

# Codes tried to confirm an authenticator: its secret is known to who tries, so this only bounds the work.
CONFIRMATIONS = 10
CONFIRMATIONS_WINDOW = timedelta(minutes=15)

# Wrong passwords for one account, and sign-in calls from one address.
LOGIN_FAILURES = 10
LOGIN_FAILURES_WINDOW = timedelta(minutes=15)
CALLS_PER_ADDRESS = 120
CALLS_PER_ADDRESS_WINDOW = timedelta(minutes=1)
