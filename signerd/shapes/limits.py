"""Limits and defaults of the loopback's calls, without an import: each program needs some of them."""

# Values of ``multisig``, repeated here to avoid the import.
RECEIVE, CHANGE = 0, 1
# The largest PSBT that is parsed: ``multisig.PsbtLimits``, repeated here to avoid the import.
MAX_PSBT_BYTES = 2 * 1024 * 1024
# Base64: four characters for three bytes.
MAX_PSBT_TEXT = (MAX_PSBT_BYTES + 2) // 3 * 4
# That, and the JSON around it.
MAX_PSBT_BODY = MAX_PSBT_TEXT + 1024
# A token not renewed for a year counts as forgotten.
DAYS, MAX_DAYS = 90, 365
# Long enough to find the app's button, short enough to expire once the person has left.
LET_IN_MINUTES = 5
# Addresses: a screenful, and the last.
USUAL_COUNT, MAX_INDEX = 10, 1_000_000
# As many as a person looks through at once, and the platform's largest page.
USUAL_MOVEMENTS, MOST_MOVEMENTS = 50, 200
# The default page for a person, and the largest that a program may fetch.
USUAL_ENTRIES, MOST_ENTRIES = 50, 500
