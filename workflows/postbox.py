"""Mails go out beside the story: a mail server that is down never holds up the money."""

import asyncio

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain.mail import MailOrder, MailPurpose, MailState
    from domain.names import purpose_of

from workflows import calls, notices
from workflows.state import RunState


class Postbox:
    """Sends mails as tasks of their own; every mail gets its row in the trail."""

    def __init__(self) -> None:
        self._deliveries: list[asyncio.Task[None]] = []
        self._keys: set[str] = set()

    def send(self, state: RunState, orders: list[MailOrder]) -> None:
        """Send mails, each key once: the ledger would not send it again, but the call costs."""
        for order in orders:
            if order.key not in self._keys:
                self._keys.add(order.key)
                self._deliveries.append(asyncio.create_task(self._deliver(state, order)))

    async def empty(self) -> None:
        """Wait until every mail is sent or given up; bounded by `calls.MAIL_PATIENCE`."""
        await workflow.wait_condition(lambda: all(task.done() for task in self._deliveries))
        for task in self._deliveries:
            await task
        self._deliveries.clear()

    async def _deliver(self, state: RunState, order: MailOrder) -> None:
        what = order.purpose.value
        to = ", ".join(contact.address for contact in order.to) or "operations"
        receipt = await calls.send_mail(
            order, lambda why: state.note("mail_given_up", f"{what}: {why}", who=to)
        )
        if receipt is not None:
            detail = f"{what} {receipt.detail}".strip()
            state.note(f"mail_{receipt.state.value}", detail, who=to)
        if receipt is None or receipt.state is MailState.REFUSED:
            missed = to
        else:
            missed = ", ".join(receipt.refused)
        if missed and order.purpose is not MailPurpose.ALERT:
            words = f"The mail {what!r} could not be delivered to {missed}; the refund goes on."
            name = purpose_of(order.key).removeprefix("mail.")
            self.send(state, notices.alert(state, f"undelivered.{name}", words))
