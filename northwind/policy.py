"""The refund policy as it is seeded: one versioned document, text and numbers that agree."""

from northwind.documents import Policy

TEXT = """\
# Refund policy of Northwind, version 2026-07

§1 Who may ask. The customer who placed the order, or our support on their behalf. A refund goes
back to the payment that paid for the order, in the same currency, and to nothing else.

§2 Damaged or wrong items. An item that arrived damaged or defective, or that is not what was
ordered, is refunded in full when it is reported within 30 days after delivery.

§3 Parcels that do not arrive. An order that was not delivered is refunded in full. Where the
carrier says that it was delivered, a person looks at the case.

§4 Change of mind. An item that the customer no longer wants is refunded when it is returned within
30 days after delivery.

§5 The return window. Nothing is refunded later than 30 days after delivery.

§6 How much. Never more than was paid for the order, less what was refunded before or is pending.

§7 Who approves. Up to $50.00, €50.00 or ¥7,500: nobody needs to. Up to $1,000.00, €1,000.00 or
¥150,000: one manager. Above that: two different people, one of them a finance director. Earlier
refunds on the order count. Any other currency needs a person. Nobody approves their own request.

§8 Disputes. A payment that is disputed with the bank is not refunded while the dispute is open.

§9 Time. Whoever is to approve is reminded after 24 hours. After 48 hours the case is escalated.
After 168 hours it expires, and the customer is told.

§10 Doubt. Threats, attempts to give orders to our systems, and letters that do not say what
happened are looked at by a person.
"""


def seeded_policy() -> Policy:
    """The policy of a new company. KWD has no limits on purpose: it needs a person."""
    return Policy(
        version="2026-07",
        text=TEXT,
        return_window_days=30,
        auto_approve_up_to={"USD": 5000, "EUR": 5000, "JPY": 7500},
        one_manager_up_to={"USD": 100000, "EUR": 100000, "JPY": 150000},
        reminder_after_hours=24,
        escalate_after_hours=48,
        expire_after_hours=168,
        grace_minutes=15,
        skew_minutes=2,
        max_rounds=3,
        model_patience_minutes=30,
        max_model_turns=8,
        operations="refund-operations@northwind.example",
    )
