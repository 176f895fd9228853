"""Gathers what is left of each run: from the company's books and mailbox, and from histories."""

from typing import Any

from temporalio.client import WorkflowHistory

from domain import names
from domain.trail import RunStatus
from starters import runs
from starters.connect import RPC_TIMEOUT
from starters.drill.driver import Driver
from starters.drill.evidence import Mail, Noted, Refund
from starters.drill.outside import payment_of
from starters.drill.site import Site


async def collect(site: Site, drivers: list[Driver]) -> None:
    """Fill the evidence of each driver.

    Raises:
        RPCError: Temporal did not come back.
        httpx.HTTPError: the company did not answer.
    """
    books = await site.read("/books")
    messages = (await site.read("/mailbox.json"))["messages"]
    for driver in drivers:
        driver.tell_of_others()
        evidence = driver.evidence
        order_id = evidence.plan.order_id
        payment = books["payments"].get(payment_of(order_id))
        if payment is not None:
            evidence.captured_minor = payment["captured"]["amount_minor"]
            evidence.currency = payment["captured"]["currency"]
            evidence.refunds = [refund_of(row) for row in payment["refunds"]]
        evidence.foreign_refunds = [
            refund
            for name, other in books["payments"].items()
            if name != payment_of(order_id)
            for refund in map(refund_of, other["refunds"])
            if refund.order_id == order_id
        ]
        evidence.noted = [noted_of(row) for row in books["orders"].get(order_id, ())]
        mine = f"/{names.workflow_id(order_id)}/"
        evidence.mails = [mail_of(row) for row in messages if mine in (row["key"] or "")]
        evidence.histories = [await _history(site, order_id, run_id) for run_id in driver.run_ids]
        evidence.status = await _last_word(site, order_id)


async def _history(site: Site, order_id: str, run_id: str) -> WorkflowHistory:
    handle = site.client.get_workflow_handle(names.workflow_id(order_id), run_id=run_id)
    return await site.patiently(lambda: handle.fetch_history(rpc_timeout=RPC_TIMEOUT))


async def _last_word(site: Site, order_id: str) -> RunStatus | None:
    workflow_id = names.workflow_id(order_id)
    last = await site.patiently(lambda: runs.find(site.client, workflow_id))
    if last is None or last.is_open:
        return None
    return await site.patiently(lambda: runs.result(last))


def refund_of(row: dict[str, Any]) -> Refund:
    """A refund as the company's books show it."""
    metadata = row["metadata"]
    return Refund(
        refund_id=row["id"],
        amount_minor=row["amount_minor"],
        status=row["status"],
        key=metadata.get(names.METADATA_KEY, ""),
        proposal_id=metadata.get(names.METADATA_PROPOSAL, ""),
        order_id=metadata.get(names.METADATA_ORDER, ""),
    )


def noted_of(row: dict[str, Any]) -> Noted:
    """What the order service noted, as the company's books show it."""
    return Noted(
        key=row["key"],
        refund_id=row["refund"],
        amount_minor=row["amount"]["amount_minor"],
        times=row["times"],
    )


def mail_of(row: dict[str, Any]) -> Mail:
    """A message as the company's mailbox shows it."""
    return Mail(
        key=row["key"],
        purpose=names.purpose_of(row["key"]),
        to=tuple(row["to"]),
        subject=row["subject"],
        text=row["text"],
        message_id=row["message_id"],
        deliveries=row["deliveries"],
    )
