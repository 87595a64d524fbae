"""A scripted platform behind httpx.MockTransport: one signer, one workspace, and its submissions in a folder.

It stores every submission in a file before it answers, as a real platform commits it, so that submissions
outlive a killed daemon. ``before`` and ``after`` may change or withhold an answer.
"""

import base64
import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import httpx

from custody.schemas.asset_tokens import Contract
from custody.schemas.common import NullString, Shape
from custody.schemas.history import VaultHistory, VaultMovement
from custody.schemas.keys import ChallengeLine, Key, offered_digest, signed_host
from custody.schemas.proposals import Proposal, ProposalSigner, SignPsbtResponse, TxType
from custody.schemas.vaults import Vault as VaultShape
from multisig import MultisigError, Psbt, Vault, recover_message_key, signer_progress
from signerd.core.tokens import PublishedToken, TokenClaim
from signerd.core.values import DeclineClaim, Snapshot
from tests.support.desk import VAULT, VAULT_ID
from tests.support.wallets import ALICE, Keys

URL = "http://127.0.0.1:1"
USER_ID = 7
EMAIL, PASSWORD, OTP = "alice@example.org", "correct horse battery", "123456"
STAMP = "2026-01-02T03:04:05.000Z"
NONE = {"String": "", "Valid": False}

Hook = Callable[[httpx.Request], httpx.Response | None]


def is_whole_list(request: httpx.Request) -> bool:
    """Whether it asks for everybody's proposals, not for what awaits this signer nor for one by its id."""
    is_list = (request.method, request.url.path) == ("GET", "/api/v1/psbt")
    return is_list and not {"awaiting", "psbt_id"} & set(request.url.params)


def problem(status: int, code: str, detail: str = "no", trace: str = "t") -> httpx.Response:
    body = {"title": "No", "status": status, "detail": detail, "code": code, "trace_id": trace}
    return httpx.Response(status, json=body)


def answer_of(shape: type[Shape], **said: Any) -> dict[str, Any]:
    """What a platform has to say of such a thing: ``said``, by the names on the wire, and else nothing."""
    required = [
        (one.alias or name, one.annotation) for name, one in shape.model_fields.items() if one.is_required()
    ]
    return {name: _nothing(kind) for name, kind in required if name not in said} | said


def _nothing(kind: Any) -> Any:
    if get_origin(kind) is Literal:
        return get_args(kind)[0]
    if get_origin(kind) is not None:
        return None if NoneType in get_args(kind) else []
    return {str: "", int: 0, bool: False, datetime: STAMP, NullString: NONE}[kind]


def text(value: str) -> dict[str, Any]:
    return {"String": value, "Valid": True}


def listed_key(
    key_id: str, xpub: str, fingerprint: str, path: str, *, label: str = "Desk", status: str = "active"
) -> dict[str, Any]:
    """A key as the platform lists it."""
    place = {"Xpub": text(xpub), "MasterFingerprint": text(fingerprint), "DerivationBasePath": text(path)}
    return answer_of(Key, ID=key_id, Status=status, Net="testnet", Label=text(label), **place)


def movement(number: int, **changes: Any) -> dict[str, Any]:
    """A confirmed deposit of as many thousand satoshis as its number, as the platform lists it."""
    amount = number * 1_000
    usual = {
        "txid": f"{number:064x}",
        "kind": "deposit",
        "height": 100 + number,
        "amount_sats": amount,
        "balance_sats": 500_000 + amount,
        "outputs": [{"address": VAULT.address(0, number), "amount_sats": amount, "vout": 0}],
    }
    return answer_of(VaultMovement, **{**usual, **changes})


def _decliner(said: DeclineClaim) -> dict[str, Any]:
    told = {"decided_at": said.at, "name": said.by, "reason": said.reason}
    return answer_of(ProposalSigner, user_id="3", decision="reject", **told)


def _decoded(claim: TokenClaim) -> dict[str, Any]:
    """The claim decoded, with a sentence that the daemon must not trust."""
    shape: dict[str, Any] = {
        "function": "",
        "data_hex": "",
        "words": "Nothing happens.",
        **dict(claim.details),
    }
    for name in shape.keys() & {"decimals", "whitelist_count"}:
        shape[name] = int(shape[name])
    if "whitelist_enabled" in shape:
        shape["whitelist_enabled"] = shape["whitelist_enabled"] == "yes"
    return shape


@dataclass
class FakePlatform:
    """``proposals`` are snapshots; submissions and declines are read from the folder each time.

    ``not_ours``: proposals that do not ask this signer. ``replaced_by``: the vault that it says takes the
    place of its own.
    """

    folder: Path
    proposals: dict[str, Snapshot] = field(default_factory=dict)
    vault: Vault = VAULT
    signer: Keys = ALICE
    two_factor: bool = False
    before: Hook = field(default=lambda _request: None)
    after: Hook = field(default=lambda _request: None)
    requests: list[tuple[str, str]] = field(default_factory=list)
    logins: int = 0
    token: str = "access-0"
    refresh_token: str = "refresh-0"
    keys: list[dict[str, Any]] = field(default_factory=list)
    workspace_network: str = "testnet"
    bad_proposals: list[Any] = field(default_factory=list)
    not_ours: set[str] = field(default_factory=set)
    bad_vaults: list[Any] = field(default_factory=list)
    published: dict[int, PublishedToken] = field(default_factory=dict)
    holdings: list[Any] = field(default_factory=list)
    calls: list[Any] = field(default_factory=list)
    movements: list[Any] = field(default_factory=list)
    next_address: str = ""
    confirmed_sats: int = 0
    replaced_by: str | None = None

    def __post_init__(self) -> None:
        issued = self.folder / "issued"
        if issued.exists():
            self.token, self.refresh_token = issued.read_text().split()

    @property
    def transport(self) -> httpx.MockTransport:
        return httpx.MockTransport(self.answer)

    def answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append((request.method, request.url.path))
        early = self.before(request)
        if early is not None:
            return early
        response = self._route(request)
        return self.after(request) or response

    # --- what it was told -----------------------------------------------------------------------------------

    def told(self) -> list[dict[str, Any]]:
        """Every sign-psbt call that arrived, oldest first."""
        path = self.folder / "told.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def signatures(self, psbt_id: str) -> list[dict[str, Any]]:
        return [t for t in self.told() if t["psbt_id"] == psbt_id and t["decision"] == "approve"]

    def _tell(self, entry: dict[str, Any]) -> None:
        with (self.folder / "told.jsonl").open("a") as file:
            file.write(json.dumps(entry) + "\n")
            file.flush()
            os.fsync(file.fileno())

    # --- routes ---------------------------------------------------------------------------------------------

    def _route(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content or b"{}")
        unsigned: dict[tuple[str, str], Callable[[], httpx.Response]] = {
            ("POST", "/auth/login"): lambda: self._login(body),
            ("POST", "/auth/otp-validate"): lambda: self._otp(body),
            ("POST", "/auth/refresh"): lambda: self._refresh(request),
        }
        signed: dict[tuple[str, str], Callable[[], httpx.Response]] = {
            ("POST", "/auth/logout"): lambda: httpx.Response(200, json={"success": True}),
            ("GET", "/api/v1/get-user-info"): lambda: httpx.Response(200, json=self._user()),
            ("GET", "/api/v1/list-wallets"): lambda: httpx.Response(
                200, json=[*self.bad_vaults, self._vault()]
            ),
            ("GET", "/api/v1/psbt"): lambda: self._psbt(request),
            ("POST", "/api/v1/sign-psbt"): lambda: self._sign(body, request.headers["idempotency-key"]),
            ("POST", "/api/v1/key-challenge"): lambda: httpx.Response(
                200, json=self._challenge(request, body)
            ),
            ("POST", "/api/v1/register-key"): lambda: self._register(body),
            ("GET", "/api/v1/keys"): lambda: httpx.Response(200, json=self.keys),
            ("GET", "/api/v1/contract"): lambda: self._contract(request),
            ("GET", "/api/v1/get-tokens"): lambda: httpx.Response(200, json=self.holdings),
            ("GET", "/api/v1/vault-history"): lambda: self._history(request),
            ("GET", "/api/v1/contract-calls"): lambda: httpx.Response(200, json=self.calls),
        }
        call = (request.method, request.url.path)
        if call in unsigned:
            return unsigned[call]()
        if request.headers.get("authorization") != f"Bearer {self.token}":
            return problem(401, "TOKEN_EXPIRED")
        return signed[call]() if call in signed else problem(404, "NOT_FOUND")

    def _otp(self, body: dict[str, Any]) -> httpx.Response:
        good = body["otp"] == OTP and body["token_2fa"] == "two-factor-token"
        return self._session() if good else problem(401, "OTP_INVALID")

    def _login(self, body: dict[str, Any]) -> httpx.Response:
        self.logins += 1
        if (body["email"], body["password"]) != (EMAIL, PASSWORD):
            return problem(401, "UNAUTHENTICATED")
        if self.two_factor:
            waiting = {"requires_2FA": True, "token": "", "token_2fa": "two-factor-token", "sid": ""}
            return httpx.Response(200, json=waiting)
        return self._session()

    def _session(self) -> httpx.Response:
        number = int(self.refresh_token.split("-")[1]) + 1
        self.token, self.refresh_token = f"access-{number}", f"refresh-{number}"
        (self.folder / "issued").write_text(f"{self.token} {self.refresh_token}")
        body = {
            "requires_2FA": False,
            "token": self.token,
            "token_2fa": "",
            "sid": "sid-0123456789abcdef",
            "expires_in": 900,
        }
        cookie = f"refresh_token={self.refresh_token}; HttpOnly; Path=/auth"
        return httpx.Response(200, json=body, headers={"set-cookie": cookie})

    def _refresh(self, request: httpx.Request) -> httpx.Response:
        # The previous token stays valid, for a client that was killed before it stored the new one.
        number = int(self.refresh_token.split("-")[1])
        accepted = {f"refresh_token=refresh-{n}" for n in (number, number - 1)}
        if request.headers.get("cookie") not in accepted:
            return problem(401, "UNAUTHENTICATED")
        return self._session()

    def _user(self) -> dict[str, Any]:
        """The number and the workspaces: of nothing else a signer reads."""
        workspace = {"uid": 1, "name": "Treasury", "description": "", "net": self.workspace_network}
        organisation = {"Workspaces": {"Workspaces": [{"WorkspaceInfo": workspace}]}}
        return {"UUID": USER_ID, "OrganisationsInfo": {"Organisations": [organisation]}}

    def _vault(self) -> dict[str, Any]:
        return answer_of(
            VaultShape,
            id=VAULT_ID,
            name="Treasury",
            network="testnet",
            m=self.vault.threshold,
            n=len(self.vault.cosigners),
            address=self.vault.address(0, 0),
            descriptor=self.vault.descriptor,
            chain="regtest",
            receive_address=self.next_address or self.vault.address(0, 0),
            confirmed_sats=self.confirmed_sats,
            replaced_by=self.replaced_by,
            limit_error="Spending policies cannot be read.",
        )

    def _psbt(self, request: httpx.Request) -> httpx.Response:
        query = request.url.params
        if "psbt_id" in query:
            found = self.proposals.get(query["psbt_id"])
            return httpx.Response(200, json=self._shape(found)) if found else problem(404, "NOT_FOUND")
        done = {t["psbt_id"] for t in self.told()}
        listed = [
            snapshot
            for psbt_id, snapshot in self.proposals.items()
            if "awaiting" not in query or (psbt_id not in done and self._awaits_us(snapshot))
        ]
        ids = [
            *(bad.get("psbt_id") if isinstance(bad, dict) else None for bad in self.bad_proposals),
            *(snapshot.psbt_id for snapshot in listed),
        ]
        after = query.get("after")
        first = ids.index(after) + 1 if after is not None and after in ids else 0
        page = [*self.bad_proposals, *listed][first : first + int(query.get("limit", 1000))]
        waiting = [self._shape(each) if isinstance(each, Snapshot) else each for each in page]
        etag = '"' + hashlib.sha256(json.dumps(waiting).encode()).hexdigest() + '"'
        if request.headers.get("if-none-match") == etag:
            return httpx.Response(304, headers={"etag": etag})
        return httpx.Response(200, json=waiting, headers={"etag": etag})

    def _history(self, request: httpx.Request) -> httpx.Response:
        """Paged as on the platform; of its filters only the label, by substring."""
        query = request.url.params
        sought = query.get("label", "")
        found = [one for one in self.movements if sought.lower() in json.dumps(one).lower()]
        start = int(query.get("cursor", "0"))
        end = start + int(query.get("limit", "100"))
        following = str(end) if end < len(found) else None
        page = answer_of(VaultHistory, vault_id=VAULT_ID, movements=found[start:end], next_cursor=following)
        return httpx.Response(200, json=page)

    def _awaits_us(self, snapshot: Snapshot) -> bool:
        return snapshot.status == "PENDING" and snapshot.psbt_id not in self.not_ours

    def _shape(self, snapshot: Snapshot) -> dict[str, Any]:
        signed = len(self.signatures(snapshot.psbt_id)) > 0
        return answer_of(
            Proposal,
            psbt_id=snapshot.psbt_id,
            vault_id=snapshot.vault_id,
            tx_type=snapshot.kind.value,
            status=snapshot.status.value,
            created_by=snapshot.created_by,
            description=snapshot.description,
            psbt_base64=base64.b64encode(snapshot.psbt).decode(),
            txid=snapshot.txid,
            txid_expected=snapshot.txid_expected,
            recipients=list(snapshot.recipients),
            amounts_sats=list(snapshot.amounts),
            fee_sats=snapshot.fee,
            op_return=snapshot.op_return,
            collected_signatures=max(int(signed), snapshot.collected),
            required_signatures=2,
            created_at=snapshot.created_at or STAMP,
            confirmations=snapshot.confirmations,
            replaces_psbt_id=snapshot.replaces,
            contract_uid=snapshot.contract_uid,
            trouble=None if snapshot.trouble is None else asdict(snapshot.trouble),
            signers=[_decliner(one) for one in snapshot.declines],
            failure_reason=snapshot.why_ended or None,
            decoded_call=None if snapshot.call is None else _decoded(snapshot.call),
        )

    def _sign(self, body: dict[str, Any], key: str) -> httpx.Response:
        snapshot = self.proposals.get(body["psbt_id"])
        if snapshot is None:
            return problem(404, "NOT_FOUND")
        entry = {
            "psbt_id": body["psbt_id"],
            "decision": body.get("decision", "approve"),
            "key": key,
            "psbt": body.get("psbt_base64", ""),
            "reason": body.get("reason", ""),
        }
        if entry["decision"] == "approve" and not self._is_signed(snapshot, entry["psbt"]):
            return problem(422, "BAD_SIGNATURE")
        self._tell(entry)
        collected = {"collected_signatures": int(entry["decision"] == "approve"), "required_signatures": 2}
        answer = answer_of(SignPsbtResponse, psbt_id=body["psbt_id"], status="PENDING", **collected)
        return httpx.Response(200, json=answer)

    def _is_signed(self, snapshot: Snapshot, text: str) -> bool:
        policy = self.signer.profile() if snapshot.kind is TxType.FORWARD else self.vault
        try:
            return signer_progress(Psbt.parse(text), policy, self.signer.fingerprint).is_complete
        except MultisigError:
            return False

    def _contract(self, request: httpx.Request) -> httpx.Response:
        uid = int(request.url.params["contract_uid"])
        if uid not in self.published:
            return problem(404, "NOT_FOUND")
        shown = self.published[uid]
        deployment = None if shown.deployment is None else shown.deployment.hex()
        lies = {"symbol": "LIE", "decimals": 18, "total_supply": "1", "max_supply": "1"}
        proof = {"bytecode": shown.bytecode.decode(), "deployment_hex": deployment}
        told = answer_of(Contract, contract_uid=uid, vault_id=VAULT_ID, status="CONFIRMED", **lies, **proof)
        return httpx.Response(200, json=told)

    # --- keys -----------------------------------------------------------------------------------------------

    def _challenge(self, request: httpx.Request, body: dict[str, Any]) -> dict[str, Any]:
        accounts = [
            (f"m/48h/1h/{item['account']}h/2h", item["xpub"]) for item in body.get("vault_accounts", [])
        ]
        profile = [(body["profile"]["derivation_base_path"], body["profile"]["xpub"])]
        host, digest = signed_host(str(request.url)), offered_digest([*accounts, *profile])
        line = ChallengeLine(host, "testnet", USER_ID, "ab" * 16, digest)
        return {
            "challenge": str(line),
            "derivation_path": body["derivation_base_path"] + "/0/0",
            "expires_at": STAMP,
        }

    def _register(self, body: dict[str, Any]) -> httpx.Response:
        if self.keys and not body.get("replace"):
            return problem(409, "KEY_ALREADY_ACTIVE")
        proof = body["proof"]
        public_key = recover_message_key(proof["challenge"], base64.b64decode(proof["signature"]))
        if public_key != self.signer.vault_key().xpub.derive_public_key(0, 0):
            return problem(422, "BAD_SIGNATURE")
        key = listed_key(
            f"key-{len(self.keys) + 1}",
            body["xpub"],
            body["master_fingerprint"],
            body["derivation_base_path"],
            label=body["label"],
        )
        self.keys.append(key)
        return httpx.Response(200, json=key)
