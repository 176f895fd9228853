"""The books: what really happened, whatever was answered to whom."""

import json
import sqlite3
from typing import Any

from northwind.mail import mailbox
from northwind.orders import noted_refunds
from northwind.payment_objects import UNDONE, refunds_of


def read_books(db: sqlite3.Connection) -> dict[str, Any]:
    """Refunds by payment and by order, mails by purpose, how often each operation was called."""
    calls = {row["operation"]: row["count"] for row in db.execute("select * from calls")}
    return {
        "payments": {
            row["id"]: _payment(db, row) for row in db.execute("select * from payments order by id")
        },
        "orders": noted_refunds(db),
        "mails": [
            {
                "key": mail["key"],
                "purpose": None if mail["key"] is None else mail["key"].rpartition("/")[2],
                "to": mail["to"],
                "subject": mail["subject"],
                "message_id": mail["message_id"],
                "deliveries": mail["deliveries"],
            }
            for mail in mailbox(db)
        ],
        "model_requests": calls.get("chat", 0),
        "calls": calls,
    }


def _payment(db: sqlite3.Connection, payment: sqlite3.Row) -> dict[str, Any]:
    refunds = refunds_of(db, payment["id"])
    refunded = sum(row["amount_minor"] for row in refunds if row["status"] == "succeeded")
    held = sum(row["amount_minor"] for row in refunds if row["status"] not in UNDONE)
    return {
        "captured": {"amount_minor": payment["amount_minor"], "currency": payment["currency"]},
        "refunded_minor": refunded,
        "pending_minor": held - refunded,
        "disputed": payment["disputed_at"] is not None,
        "refunds": [
            {
                "id": row["id"],
                "amount_minor": row["amount_minor"],
                "status": row["status"],
                "reason": row["reason"],
                "metadata": json.loads(row["metadata"]),
                "failure_reason": row["failure_reason"],
                "created": row["created"],
            }
            for row in refunds
        ],
    }
