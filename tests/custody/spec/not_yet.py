"""What the specification names and no issue has built so far, with the issue that it waits for.

A name that is built must leave this list: a test says so.
"""

ENDPOINTS = {
    "/api/v1/add-to-contract-whitelist": 8,
    "/api/v1/call-contract": 8,
    "/api/v1/contract": 8,
    "/api/v1/contract-calls": 8,
    "/api/v1/contract-calls/resubmit": 8,
    "/api/v1/contracts": 8,
    "/api/v1/create-token": 8,
    "/api/v1/get-tokens": 8,
    "/api/v1/get-workspace-whitelist": 8,
    "/api/v1/remove-from-contract-whitelist": 8,
}
RECORDS = {"Contract": 8, "Contract.signers": 8, "TokenBalance": 8}
