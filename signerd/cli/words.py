"""A proposal in words: where the money goes, and each check in a sentence. Amounts in both units, the network
on top.
"""

from collections.abc import Sequence

from custody.common.text import amount, count, short_ids
from signerd import shapes
from signerd.core.states import ASKED, network_words
from signerd.core.text import WHY_ELSEWHERE, place_words
from signerd.standing import is_proof, line_words, own_words

PROFILE = "your own profile"
# The check that compares with what is replaced.
REPLACEMENT = "replacement"
# Before the decision: what is said of deciding is true in these.
_UNDECIDED = ASKED | {"received"}
_MARKS = {"allow": "ok     ", "warn": "WARNING", "refuse": "REFUSED"}


def proposals_text(lines: "Sequence[shapes.ProposalLine]") -> str:
    """A list, a few lines for each; the network on top. Ids are shortened as far as they stay distinct."""
    short = short_ids([line.psbt_id for line in lines])
    networks = dict.fromkeys(network_words(line.network) for line in lines)
    blocks = [_listed_proposal(line, short[line.psbt_id]) for line in lines]
    return "\n\n".join([*networks, *("\n".join(block) for block in blocks)])


def _listed_proposal(line: "shapes.ProposalLine", short: str) -> list[str]:
    whose = PROFILE if line.imported_by and line.from_profile else _vault_words(line)
    fee = "moves no money" if is_proof(line) else f"fee {amount(line.fee_sats)}"
    lines = [line.title, standing_words(line), f"from {whose}, {fee}"]
    if line.imported_by:
        lines.append(f"not the platform's: imported by {line.imported_by}")
    else:
        said = f"by {line.proposed_by}{_when(line)}" + (f', "{line.memo}"' if line.memo else "")
        lines.append(f"{line.collected} of {line.required} signatures, the platform says: {said}")
    lines += [*_trouble(line), *_declines(line)]
    if own := own_words(line):
        lines.append(own)
    first, *others = lines
    return [f"{short}  {first}", *(f"{'':{len(short)}}  {other}" for other in others)]


def _vault_words(line: "shapes.ProposalLine") -> str:
    return "a vault that is not pinned here" if line.vault_name is None else f"'{line.vault_name}'"


def _trouble(line: "shapes.ProposalLine") -> list[str]:
    if line.trouble is None:
        return []
    since = _moment(line.trouble.since)
    return [f"TROUBLE, by the platform's word, since {since}: {line.trouble.sentence}"]


def _declines(line: "shapes.ProposalLine") -> list[str]:
    """Also the person's own, once the platform has it."""
    return [
        f"DECLINED, by the platform's word, by {one.by}{'' if one.at is None else f' on {_moment(one.at)}'}"
        + (f': "{one.reason}"' if one.reason else "")
        for one in line.declines
    ]


def _when(line: "shapes.ProposalLine") -> str:
    return "" if line.proposed_at is None else f" on {_moment(line.proposed_at)}"


def _moment(at: str) -> str:
    return at.replace("T", " ").replace("Z", " UTC")


def proposal_text(view: "shapes.ProposalView", *, verbose: bool = False) -> str:
    """Everything that an approval is bound to, and what the platform says, marked as such. What holds it
    comes first; whom it pays comes last, right above the question. ``verbose``: with each check that passed.
    """
    checks = check_lines(view.checks, verbose=verbose)
    money = money_lines(view.money, PROFILE if view.from_profile else "the vault")
    blocks = [_head(view), _verdict(view, view.state), checks, _claims(view), money]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _head(view: "shapes.ProposalView") -> list[str]:
    vault = _vault_words(view)
    code = f", verification code {view.verification_code}" if view.verification_code else ""
    lines = [
        view.title,
        f"{'PSBT' if view.imported_by else 'Proposal'} {view.psbt_id}    {network_words(view.network)}",
        f"  State: {line_words(view)}",
    ]
    if own := own_words(view):
        lines.append(f"  {own}")
    if view.imported_by:
        lines.append(f"  Not the platform's: imported by {view.imported_by}")
    # A forward goes into a vault; an imported PSBT from the profile does not concern one.
    lines.append(
        f"  From:  {PROFILE}" if view.imported_by and view.from_profile else f"  Vault: {vault}{code}"
    )
    # Only where the check has proven the replacement; what the platform says of it stands at the end.
    lines += [
        f"  {c.sentence}" for c in view.checks if c.name == REPLACEMENT and "replaced_fee_sats" in c.figures
    ]
    if view.reason:
        lines.append(f"  {view.reason}")
    if view.alarm and view.alarm != view.reason:
        lines.append(f"  {view.alarm}")
    return [*lines, *(f"  {line}" for line in (*_trouble(view), *_declines(view)))]


def money_lines(money: "shapes.MoneyView | None", whose: str) -> list[str]:
    """``whose``: the owner of the coins, to whom the change goes."""
    if money is None:
        return ["Where the money goes: NOT KNOWN. The transaction was not judged; the checks say why."]
    if money.proof is not None:
        return _proof_lines(money.proof, money.txid)
    coins = count(money.inputs, "coin", "coins")
    rate = "the amount of a coin is not proven" if money.fee_rate is None else f"{money.fee_rate} sat/vB"
    lines = [
        "Where the money goes (from the transaction itself)",
        f"  Transaction {money.txid}, {money.vsize} vB{_terms(money)}",
        f"  takes  {amount(money.total_in_sats)} from {whose}, in {coins}",
        f"  fee    {amount(money.fee_sats)}, {rate}",
    ]
    for c in money.change:
        where = f"{c.on_screen} ({place_words(c.chain, c.index)})"
        lines.append(f"  back   {amount(c.amount_sats)} to {whose}, {where}")
        lines += _elsewhere(c.on_screen, c.address)
    lines += [line for output in money.data for line in _data(output)]
    return [*lines, *payment_lines(money)]


def payment_lines(money: "shapes.MoneyView | None") -> list[str]:
    lines = []
    for p in () if money is None else money.payments:
        label = f" ({p.label})" if p.label else ""
        lines.append(f"  pays   {amount(p.amount_sats)} to {p.on_screen or f'script {p.script}'}{label}")
        lines += _elsewhere(p.on_screen, p.address)
        lines += [f"         {p.pinned}"] if p.pinned else []
    return lines


def _proof_lines(proof: "shapes.ProofView", txid: str) -> list[str]:
    return [
        "It moves no money, and pays no fee (from the transaction itself)",
        f"  {proof.sentence}",
        f"  signs  {proof.message}",
        f"  as     {proof.on_screen}",
        *_elsewhere(proof.on_screen, proof.address),
        f"  Transaction {txid}, which no node can ever take",
    ]


def _elsewhere(screen: str | None, address: str | None) -> list[str]:
    """The address as other programs write it, where the device writes it differently."""
    return [] if screen == address else [f"         {address} elsewhere: {WHY_ELSEWHERE}"]


def _data(output: "shapes.DataView") -> list[str]:
    text = f" ('{output.text}')" if output.text else ""
    line = f"  data   {count(len(output.data) // 2, 'byte', 'bytes')}: {output.data}{text}"
    return [line] if output.token is None else [line, *_token(output.token)]


def _token(token: "shapes.TokenView") -> list[str]:
    """The hex that the device shows is on a line of its own, to be compared digit by digit."""
    rows = (*token.details, ("token", _token_name(token)), ("on the device", _on_screen(token)))
    return [
        f"         A token's data: {token.sentence}",
        *(f"           {label}: {value}" for label, value in rows),
        *_listed(token),
        *(f"           {note}" for note in token.notes),
    ]


def _on_screen(token: "shapes.TokenView") -> str:
    if token.on_screen is None:
        return "not known"
    return token.on_screen if token.on_screen == token.hex else f"{token.on_screen}.. and no more"


def _listed(token: "shapes.TokenView") -> list[str]:
    """Lines are numbered, so that the end of a long list is not mistaken for all of it."""
    if not token.listed:
        return []
    total = len(token.listed)
    named = (f"{one.address}{f' ({one.name})' if one.name else ''}" for one in token.listed)
    what = count(total, "address", "addresses")
    return [
        f"           listed from the start: {what}, SHA-256 of the list {token.listed_hash}",
        *(f"             {number} of {total}: {words}" for number, words in enumerate(named, 1)),
    ]


def _token_name(token: "shapes.TokenView") -> str:
    if not token.proven:
        return "NOT PROVEN: amounts are raw units"
    supplies = f"first supply {token.first_supply}, never more than {token.max_supply}"
    return f"proven by its deployment, {supplies} {token.ticker} tokens"


def _terms(money: "shapes.MoneyView") -> str:
    from multisig.transaction import VERSION_NAMES

    version = f", {VERSION_NAMES[money.version]}" if money.version in VERSION_NAMES else ""
    replaceable = f"{version}, {'' if money.replaceable else 'not '}replaceable"
    return f"{replaceable}, not before {money.locktime} (locktime)" if money.locktime else replaceable


def check_lines(checks: "tuple[shapes.CheckView, ...]", *, verbose: bool = False) -> list[str]:
    """What refuses or warns comes first. Checks that passed are one line unless ``verbose``."""
    passed = [c for c in checks if c.outcome == "allow"]
    lines = sorted((c for c in checks if c.outcome != "allow"), key=lambda c: c.outcome != "refuse")
    shown = [*lines, *passed] if verbose else lines
    words = [f"  {_MARKS.get(c.outcome, c.outcome)}  {c.sentence}  [{c.name}]" for c in shown]
    if passed and not verbose:
        words.append(f"  {_MARKS['allow']}  {count(len(passed), 'check', 'checks')} passed: -v shows each")
    return ["Checks", *words]


def _claims(view: "shapes.ProposalView") -> list[str]:
    if view.imported_by:
        return ["The platform says nothing about it: it does not know it, and is not told."]
    collected = f"{view.collected} of {view.required} signatures"
    lines = [
        "What the platform says (not believed)",
        f"  {view.kind}, {view.platform_status.lower()}: {collected}",
        f"  made by {view.proposed_by}{_when(view)}",
    ]
    if view.description:
        lines.append(f'  "{view.description}"')
    if view.recorded_txid:
        confirmed = count(view.confirmations, "confirmation", "confirmations")
        lines.append(f"  transaction {view.recorded_txid}, {confirmed}")
    if view.trouble is not None:
        lines.append(f'  "{view.trouble.words}"')
    return lines


def _verdict(view: "shapes.ProposalView | shapes.PsbtReview", state: str = "received") -> list[str]:
    if not view.allowed:
        return ["It cannot be approved: a check refuses it."]
    if view.to_acknowledge and state in _UNDECIDED:
        return [f"It is held until you name these warnings: {', '.join(view.to_acknowledge)}"]
    return []


def standing_words(line: "shapes.ProposalLine") -> str:
    """The state and why; a reason that begins with the state's own words says both."""
    state = line_words(line)
    if line.reason.lower().startswith(state):
        return state + line.reason[len(state) :]
    return f"{state}: {line.reason}" if line.reason else state


def psbt_text(view: "shapes.PsbtReview", *, verbose: bool = False) -> str:
    """What signing a PSBT would do, before the person is asked."""
    whose = f"the vault '{view.vault_name}'" if view.vault_id else PROFILE
    head = [view.title, f"A PSBT that the platform says nothing about    {network_words(view.network)}"]
    if view.proposal_id is not None:
        head.append(f"  It is the platform's proposal {view.proposal_id}: approve that one instead.")
    checks = check_lines(view.checks, verbose=verbose)
    blocks = [head, _verdict(view), checks, money_lines(view.money, whose)]
    return "\n\n".join("\n".join(block) for block in blocks if block)
