"""Messages that must not count, as an attacker, a confused colleague or a broken script sends."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from domain import names
from domain.money import Money
from domain.request import Proposal
from domain.statements import SignedStatement, Verdict
from starters.drill.plan import Message
from starters.statements import Signer
from workers.settings import LOCAL

REQUESTER = "sam.okafor@northwind.example"
MANAGER = "maria.silva@northwind.example"
DIRECTOR = "grace.lin@northwind.example"
HAS_LEFT = "victor.hale@northwind.example"
# A proposal that nobody has made, for messages that come before there is one.
_NO_PROPOSAL = "0" * 32


@dataclass(frozen=True)
class Signal:
    """What is sent: a signal's name and its arguments."""

    name: str
    arguments: tuple[Any, ...]
    by: str = ""
    proposal_id: str = ""


def make(
    message: Message, keys: Path, order_id: str, proposal: Proposal | None, counted: str
) -> Signal:
    """A message that must not count.

    Args:
        message: Which.
        keys: The folder of everybody's private keys.
        order_id: Whose run it goes to.
        proposal: What waits there for a decision, if anything.
        counted: The token of an approval that has counted; empty where there is none yet.
    """
    on = proposal or _made_up(order_id)
    match message:
        case Message.GARBAGE:
            return Signal(names.SIGNAL_DECIDE, ({"verdict": ["approve", 7, None]},))
        case Message.NOTHING:
            return Signal(names.SIGNAL_DECIDE, ())
        case Message.UNKNOWN_SIGNAL:
            return Signal("aprove", ("yes",))
        case Message.UNSIGNED:
            return _signed(_without_signature(_approval(keys, MANAGER, on)), MANAGER, on)
        case Message.FORGED:
            return _signed(_by_another_key(keys, on), MANAGER, on)
        case Message.FOREIGN:
            other = on.model_copy(update={"order_id": "8890", "proposal_id": _NO_PROPOSAL})
            return _signed(_approval(keys, MANAGER, other), MANAGER, other)
        case Message.OTHER_ROUND:
            other = on.model_copy(update={"proposal_id": _NO_PROPOSAL, "round": on.round + 1})
            return _signed(_approval(keys, MANAGER, other), MANAGER, other)
        case Message.BY_REQUESTER:
            return _signed(_approval(keys, REQUESTER, on), REQUESTER, on)
        case Message.BY_ONE_WHO_LEFT:
            return _signed(_approval(keys, HAS_LEFT, on), HAS_LEFT, on)
        case Message.DUPLICATE:
            token = counted or _approval(keys, REQUESTER, on)
            return _signed(token, MANAGER if counted else REQUESTER, on)


def _signed(token: str, by: str, on: Proposal) -> Signal:
    return Signal(names.SIGNAL_DECIDE, (SignedStatement(token=token),), by, on.proposal_id)


def _approval(keys: Path, who: str, on: Proposal) -> str:
    return Signer(keys, who).decision(LOCAL, on, Verdict.APPROVE, "").token


def _without_signature(token: str) -> str:
    _, claims, _ = token.split(".")
    header = json.dumps({"alg": "none", "typ": "decision"}).encode()
    import jwt

    return f"{jwt.utils.base64url_encode(header).decode()}.{claims}."


def _by_another_key(keys: Path, on: Proposal) -> str:
    signer = Signer(keys, REQUESTER)
    signer.address = MANAGER
    return signer.decision(LOCAL, on, Verdict.APPROVE, "").token


def _made_up(order_id: str) -> Proposal:
    amount = Money(amount_minor=1, currency="USD")
    return Proposal(
        proposal_id=_NO_PROPOSAL,
        round=1,
        order_id=order_id,
        payment=f"pi_{order_id}",
        amount=amount,
        taken_before=amount.with_minor(0),
        policy_version="",
        approvals_needed=1,
    )
