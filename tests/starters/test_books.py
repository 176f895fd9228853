"""The demo's own check can fail: each kind of wrong books is noticed."""

from typing import Any

import pytest

from starters.books import mistakes


def right_books() -> dict[str, Any]:
    """Books as they must be after the story."""
    ours = {"amount_minor": 42000, "status": "succeeded", "metadata": {"northwind_key": "…"}}
    by_hand = {"amount_minor": 12000, "status": "succeeded", "metadata": {}}
    return {
        "payments": {"pi_8890": {"refunds": [ours]}, "pi_8896": {"refunds": [by_hand]}},
        "orders": {"8890": [{"refund": "re_1", "amount": {"amount_minor": 42000}, "times": 1}]},
        "mails": [
            {"purpose": "mail.under_review", "to": ["ada.park@customers.example"]},
            {
                "purpose": "mail.approval_request.r1",
                "to": ["tom.becker@northwind.example", "maria.silva@northwind.example"],
            },
            {"purpose": "mail.refunded", "to": ["ada.park@customers.example"]},
        ],
    }


def test_right_books_are_right() -> None:
    """One refund, noted once, and three mails are what must be there."""
    assert mistakes(right_books()) == []


@pytest.mark.parametrize(
    "what",
    [
        "no refund",
        "two refunds",
        "amount",
        "status",
        "other order",
        "nothing noted",
        "noted twice",
        "no mail",
        "twice",
        "to",
        "more",
    ],
)
def test_wrong_books_are_noticed(what: str) -> None:
    """A missing, second, wrong or foreign refund or mail is a mistake."""
    books = right_books()
    refunds, mails = books["payments"]["pi_8890"]["refunds"], books["mails"]
    match what:
        case "no refund":
            refunds.clear()
        case "two refunds":
            refunds.append(dict(refunds[0]))
        case "amount":
            refunds[0]["amount_minor"] = 41999
        case "status":
            refunds[0]["status"] = "pending"
        case "other order":
            books["payments"]["pi_8896"]["refunds"].append(dict(refunds[0]))
        case "nothing noted" | "noted twice":
            books["orders"]["8890"] *= 0 if what == "nothing noted" else 2
        case "no mail":
            mails.pop()
        case "twice":
            mails.append(dict(mails[0]))
        case "to":
            mails[0]["to"] = ["victor.hale@northwind.example"]
        case "more":
            mails.append({"purpose": "mail.expired", "to": ["ada.park@customers.example"]})
    assert len(mistakes(books)) == 1
