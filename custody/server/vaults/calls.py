"""Vaults: creating, listing and exporting them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import Select, bindparam, select, tuple_
from sqlalchemy.orm import aliased

from custody.common.text import name_key
from custody.schemas import vaults as wire
from custody.schemas.common import Listed
from custody.schemas.limits import AssetLimits, VaultLimits
from custody.schemas.vaults import CREATE_WALLET, LIST_WALLETS, VAULT_EXPORT, VAULT_NAMES
from custody.server import errors
from custody.server.calls import Ctx, serves
from custody.server.keys.calls import active_key
from custody.server.keys.profiles import origin_key
from custody.server.keys.quorums import SignerNow, able_among, able_of, is_due, signers_of
from custody.server.limits.calls import assets_of_vaults, limits_of_vaults, read_amount
from custody.server.people.names import shown_name
from custody.server.people.staff import membership_of
from custody.server.rules.approvers import missing
from custody.server.rules.audit import Category, Event
from custody.server.rules.credentials import OPERATOR, new_id
from custody.server.services import Services
from custody.server.shown import shape_of, shown
from custody.server.store.models import (
    KeyAccountRow,
    KeyRow,
    UserRow,
    VaultRow,
    VaultSignerRow,
    WatchedScriptRow,
)
from custody.server.store.store import keep
from custody.server.vaults import stored
from multisig import (
    CHANGE,
    RECEIVE,
    MultisigError,
    Network,
    bsms_record,
    encode_address,
    wallet_policy,
)
from multisig import Vault as Policy

SCRIPT_TYPE = "p2wsh"
# Addresses of each branch. Every watched script costs time at each block.
MAX_RESCAN = 10_000
RESCAN_TURN = 100


CREATED = Event(
    "VAULT_CREATED",
    "made the vault {vault}: {m} of {n} signers approve // code {verification}",
    Category.VAULTS,
)
RESCANNED = Event(
    "VAULT_RESCANNED", "looked for coins of the vault {vault} at {addresses} addresses", Category.VAULTS
)


@serves(CREATE_WALLET)
def create_wallet(ctx: Ctx, request: wire.CreateWalletRequest) -> wire.Vault:
    """On the lowest unused BIP-48 account of each signer, which no other vault ever uses. Raises Invalid
    (network, limit, a signer who is not a member or has no active key), StateConflict (the name is taken),
    KeyAccountsExhausted.
    """
    if request.network != ctx.access.network:
        raise errors.Invalid.at("/network", f"The workspace is on {ctx.access.network}.")
    limit = read_amount("transaction_limit", request.transaction_limit)
    names = select(VaultRow.name).where(VaultRow.workspace_id == ctx.access.workspace_id)
    for name in ctx.db.scalars(names):
        # Names that look the same count as equal.
        if name_key(name) == name_key(request.name):
            raise errors.StateConflict(f"The workspace has a vault named {name!r} already.")
    taken = [
        _take_account(ctx, user_id, f"/signers/{place}") for place, user_id in enumerate(request.signers)
    ]
    try:
        signers = tuple(origin_key(key, each.derivation_path, each.xpub) for key, each in taken)
        policy = Policy(Network(ctx.access.chain), request.m, signers)
    except MultisigError as error:
        raise errors.Invalid.at("/signers", f"{error} {error.hint}") from error
    vault = VaultRow(
        id=new_id(ctx.tools.random),
        workspace_id=ctx.access.workspace_id,
        created_by=ctx.caller.user_id,
        name=request.name,
        network=ctx.access.network,
        chain=ctx.access.chain,
        m=policy.threshold,
        n=len(policy.cosigners),
        script_type=SCRIPT_TYPE,
        descriptor=policy.descriptor,
        address=policy.address(RECEIVE, 0),
        witness_script_hex=policy.witness_script(RECEIVE, 0).hex(),
        limit_sats=limit,
        cycle_period=request.cycle_period,
        cycle_day=request.cycle_day,
        is_per_cycle=request.per_cycle,
        next_receive_index=0,
        next_change_index=0,
        created_at=ctx.now,
        updated_at=ctx.now,
    )
    ctx.add(vault)
    for key_index, (key, account) in enumerate(taken):
        account.vault_id = vault.id
        signer = VaultSignerRow(
            vault_id=vault.id,
            key_index=key_index,
            user_id=key.user_id,
            key_id=key.id,
            key_account_id=account.id,
            fingerprint=key.master_fingerprint,
        )
        ctx.db.add(signer)
    ctx.db.flush()
    stored.watch_vault(ctx.db, vault)
    facts = {"vault": vault.id, "m": vault.m, "n": vault.n, "verification": policy.verification_code}
    ctx.event(CREATED, {"vault_id": vault.id}, **facts)
    made = vault_records(ctx, [vault])[0]
    return made.model_copy(update={"warnings": quorum_warnings(made.m, len(made.signers)) or None})


def rescan(services: Services, vault_id: str, addresses: int) -> None:
    """For the operator: watches the first ``addresses`` of both branches, so that the next poll finds
    payments beyond the gap. It takes several transactions, for deriving takes a while. Raises NotFound,
    Invalid.
    """
    if not 0 < addresses <= MAX_RESCAN:
        raise errors.Invalid(f"A rescan takes 1 to {MAX_RESCAN} addresses.")
    for count in (*range(RESCAN_TURN, addresses, RESCAN_TURN), addresses):
        with services.store.write() as db:
            vault = db.get(VaultRow, vault_id)
            if vault is None:
                raise errors.NotFound(f"There is no vault {vault_id}.")
            for branch in (RECEIVE, CHANGE):
                stored.watch_branch(db, vault, branch, count - stored.GAP)
            if count == addresses:
                access = stored.place_of(db, vault.workspace_id)
                services.tools.audit.record(
                    db, OPERATOR, RESCANNED, access, vault=vault.id, addresses=addresses
                )


@serves(LIST_WALLETS)
def list_wallets(ctx: Ctx, query: wire.VaultsQuery) -> Listed[wire.Vault]:
    """Raises NotFound (``after``)."""
    rows = ctx.db.scalars(_wanted(ctx, query)).all()
    for vault in rows:
        keep(ctx.db, ("vault", vault.id), vault)
    return shown(rows, lambda some: vault_records(ctx, some), "id", lambda row: row.id)


@serves(VAULT_NAMES)
def vault_names(ctx: Ctx, wanted: wire.VaultsQuery) -> Listed[wire.VaultName]:
    """Raises NotFound (``after``)."""
    columns = VaultRow.id, VaultRow.name, VaultRow.frozen_at, VaultRow.m, VaultRow.replaced_by_id
    query = _wanted(ctx, wanted)
    rows = ctx.db.execute(query.with_only_columns(*columns, VaultRow.approvers)).all()
    able = able_of(ctx.db, [row.id for row in rows], query.with_only_columns(VaultRow.id))

    def names(some: Sequence[Any]) -> list[wire.VaultName]:
        return [
            shape_of(
                wire.VaultName,
                row,
                is_frozen=row.frozen_at is not None,
                lacks_signers=len(able[row.id]) < row.m,
                lacks_approver=bool(missing(row.approvers, able[row.id])),
                replaced_by=row.replaced_by_id,
            )
            for row in some
        ]

    return shown(rows, names, "id", lambda row: str(row.id))


_EXPORTS: dict[wire.ExportForm, Callable[[Policy], str]] = {
    "descriptor": lambda vault: vault.descriptor,
    "bsms": bsms_record,
    "policy": lambda vault: str(wallet_policy(vault)),
}


@serves(VAULT_EXPORT)
def vault_export(ctx: Ctx, query: wire.VaultExportQuery) -> wire.VaultExport:
    vault = stored.vault_in(ctx.db, ctx.access, query.vault_id)
    policy = stored.policy_of(vault)
    return wire.VaultExport(
        vault_id=vault.id,
        name=vault.name,
        format=query.format,
        text=_EXPORTS[query.format](policy),
        verification_code=policy.verification_code,
    )


def _take_account(ctx: Ctx, user_id: int, pointer: str) -> tuple[KeyRow, KeyAccountRow]:
    db, access = ctx.db, ctx.access
    if membership_of(db, user_id, access.workspace_id) is None:
        raise errors.Invalid.at(pointer, f"User {user_id} is not a member of this workspace.")
    key = active_key(db, user_id, access.network)
    user = db.get_one(UserRow, user_id)
    who = shown_name(access, user.first_name, user.surname, user.email) or f"member {user_id}"
    if key is None:
        raise errors.Invalid.at(pointer, f"{who} has no active key on {access.chain}.")
    account = db.scalars(
        select(KeyAccountRow)
        .where(KeyAccountRow.key_id == key.id, KeyAccountRow.vault_id.is_(None))
        .order_by(KeyAccountRow.account)
        .limit(1)
        .with_for_update()
    ).first()
    if account is None:
        raise errors.KeyAccountsExhausted(
            f"Every vault account that {who} has registered is used by another vault. "
            "Each vault needs an unused one of each signer: ask that signer to register more, with "
            "`signerd register`.",
            faults=(errors.fault(pointer, "No unused account is left.", "exhausted"),),
        )
    return key, account


def quorum_warnings(m: int, n: int) -> list[str]:
    """S27: with disjoint quorums, a lying platform or a mistake can get one invoice paid twice."""
    if 2 * m > n:
        return []
    who, others = f"Any {m} of the {n} can pay", "others'"
    if m == 1:
        who = f"Each of the {n} can pay alone"
    if n == 2:
        who, others = "Either of the two can pay alone", "other's"
    twice = f"{who}, without the {others} knowing: one invoice can be paid twice."
    return [f"{twice} With {n // 2 + 1} of {n} every two payments share a signer."]


def _wanted(ctx: Ctx, wanted: wire.VaultsQuery) -> Select[VaultRow]:
    here = select(VaultRow).where(VaultRow.workspace_id == ctx.access.workspace_id)
    query = here.order_by(VaultRow.created_at, VaultRow.id)
    if wanted.vault_id is not None:
        query = query.where(VaultRow.id == wanted.vault_id)
    if wanted.name is not None:
        query = query.where(VaultRow.name.icontains(wanted.name, autoescape=True))
    if wanted.after is not None:
        last = stored.vault_in(ctx.db, ctx.access, wanted.after)
        query = query.where(tuple_(VaultRow.created_at, VaultRow.id) > tuple_(last.created_at, last.id))
    return query.limit(wanted.limit)


def vault_records(ctx: Ctx, vaults: Sequence[VaultRow]) -> list[wire.Vault]:
    """In the given order. Where the policies cannot be read, the records have ``limit_error`` instead."""
    db, ids = ctx.db, [vault.id for vault in vaults]
    signers, balances = signers_of(db, ids), stored.balances_of(db, ids, ctx.now)
    limits: Mapping[str, VaultLimits] = {}
    assets: Mapping[str, list[AssetLimits]] = {}
    trouble = None
    try:
        limits, assets = limits_of_vaults(ctx, vaults), assets_of_vaults(ctx, vaults)
    except errors.PolicyUnavailable as error:
        trouble = error.detail
    beside = {vault_id: (script, old) for vault_id, script, old in db.execute(_BESIDE, {"ids": ids})}
    records = []
    for vault in vaults:
        script, replaces = beside[vault.id]
        receive_address = encode_address(script, Network(vault.chain))
        assert receive_address is not None, "P2WSH has an address on every network"
        balance = balances.get(vault.id, stored.Balance())
        record = shape_of(
            wire.Vault,
            vault,
            user_id=str(vault.created_by),
            detailed_vault_limits=limits.get(vault.id),
            limit_error=trouble,
            assets=assets.get(vault.id),
            signers=[_signer(ctx, seat) for seat in signers[vault.id]],
            # Read once a process: a vault whose descriptor was altered is not shown as one to be paid from.
            descriptor=stored.policy_of(vault).descriptor,
            receive_address=receive_address,
            confirmed_sats=balance.confirmed,
            unconfirmed_sats=balance.unconfirmed,
            locked_sats=balance.locked,
            set_aside_sats=balance.aside,
            is_frozen=_is_frozen(vault),
            lacks_signers=len(able_among(signers[vault.id])) < vault.m,
            lacks_approver=bool(missing(vault.approvers, able_among(signers[vault.id]))),
            replaced_by=vault.replaced_by_id,
            replaces=replaces,
        )
        records.append(record)
    return records


_OLD = aliased(VaultRow)
# The next address's script, which is watched, so that no descriptor is parsed; and the vault before it.
_BESIDE = (
    select(VaultRow.id, WatchedScriptRow.script_pubkey, _OLD.id)
    .join(WatchedScriptRow, WatchedScriptRow.vault_id == VaultRow.id)
    .outerjoin(_OLD, _OLD.replaced_by_id == VaultRow.id)
    .where(
        VaultRow.id.in_(bindparam("ids", expanding=True)),
        WatchedScriptRow.branch == RECEIVE,
        WatchedScriptRow.address_index == VaultRow.next_receive_index,
    )
)


def _signer(ctx: Ctx, seat: SignerNow) -> wire.VaultSigner:
    name = shown_name(ctx.access, seat.first_name, seat.surname, seat.email)
    signed, months = seat.last_signed_at, seat.key_check_months
    late = signed is not None and not seat.revoked_reason and is_due(signed, months, ctx.now)
    state = seat.revoked_reason or "active"
    return shape_of(wire.VaultSigner, seat, key_state=state, name=name, check_due=late)


def _is_frozen(vault: VaultRow) -> bool:
    """Raises AttributeError where a moment of the freeze was altered outside the platform (P102)."""
    moments = [each.year for each in (vault.frozen_at, vault.unfreeze_asked_at) if each is not None]
    return bool(moments) and vault.frozen_at is not None
