"""What must be in the outside world's books after the demo: no more, no less."""

from typing import Any

ORDER = "8890"
REQUESTER = "sam.okafor@northwind.example"
APPROVER = "maria.silva@northwind.example"
REFUND_MINOR = 42_000
CURRENCY = "USD"

_CUSTOMER = frozenset({"ada.park@customers.example"})
# The managers whose limit covers $420.00; the one who has left hears nothing.
_APPROVERS = frozenset({APPROVER, "tom.becker@northwind.example"})
MAILS = {
    "mail.under_review": _CUSTOMER,
    "mail.approval_request.r1": _APPROVERS,
    "mail.refunded": _CUSTOMER,
}


def mistakes(books: dict[str, Any]) -> list[str]:
    """What is wrong in the company's books; nothing where the story went as it should."""
    return [
        *_wrong_refunds(books["payments"]),
        *_wrong_notes(noted(books)),
        *_wrong_mails(books["mails"]),
    ]


def refunds(books: dict[str, Any]) -> list[dict[str, Any]]:
    """All refunds on the order's payment."""
    made: list[dict[str, Any]] = books["payments"][f"pi_{ORDER}"]["refunds"]
    return made


def noted(books: dict[str, Any]) -> list[dict[str, Any]]:
    """The refunds of which the order service was told."""
    told: list[dict[str, Any]] = books["orders"].get(ORDER, [])
    return told


def _wrong_notes(told: list[dict[str, Any]]) -> list[str]:
    amounts = [note["amount"]["amount_minor"] for note in told]
    return [] if amounts == [REFUND_MINOR] else [f"the order service was told of {amounts}"]


def _wrong_refunds(payments: dict[str, Any]) -> list[str]:
    made = [
        (refund["amount_minor"], refund["status"]) for refund in payments[f"pi_{ORDER}"]["refunds"]
    ]
    wrong = []
    if made != [(REFUND_MINOR, "succeeded")]:
        wrong.append(f"refunds of order {ORDER}: {made}")
    others = [
        name
        for name, payment in payments.items()
        if name != f"pi_{ORDER}" and any(refund["metadata"] for refund in payment["refunds"])
    ]
    if others:
        wrong.append(f"refunds of ours on other payments: {', '.join(others)}")
    return wrong


def _wrong_mails(mails: list[dict[str, Any]]) -> list[str]:
    wrong = []
    for purpose, people in MAILS.items():
        to = [frozenset(mail["to"]) for mail in mails if mail["purpose"] == purpose]
        if to != [people]:
            told = "; ".join(", ".join(sorted(some)) for some in to) or "nobody"
            wrong.append(f"{purpose} went to {told}, in {len(to)} mails")
    others = [mail["purpose"] for mail in mails if mail["purpose"] not in MAILS]
    if others:
        wrong.append(f"mails that nobody should get: {others}")
    return wrong
