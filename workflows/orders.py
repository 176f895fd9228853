"""The order service is told of a verified refund, beside the mails: the money waits for nobody."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.interfaces import OrderNotice
    from domain.models import Outcome
    from domain.names import ORDER_PURPOSE, PATCH_TELL_ORDER_SERVICE
    from domain.outcomes import Close

from workflows import calls, notices
from workflows.postbox import Postbox
from workflows.state import RunState


async def tell_order_service(state: RunState, postbox: Postbox, close: Close) -> None:
    """Have a verified refund noted with its order; operations hear where that did not work.

    Bounded by `calls.ORDER_PATIENCE`. The outcome stays what it is: the customer has the money.
    """
    if close.outcome is not Outcome.REFUNDED or state.refund is None:
        return
    if not workflow.patched(PATCH_TELL_ORDER_SERVICE):
        return  # The run had come past this place before the order service was told of anything.
    refund = state.refund
    receipt = await calls.tell_order_service(
        OrderNotice(
            environment=state.request.environment,
            key=state.key(ORDER_PURPOSE),
            order_id=state.request.order_id,
            refund=refund,
        ),
        lambda why: state.note("order_not_told", why),
    )
    if receipt is not None:
        known = ", which it knew" if receipt.known_before else ""
        state.note("order_told", f"the order service has {refund.id}: {refund.amount}{known}")
        return
    words = (
        f"The refund is made and verified. The order service did not confirm that it has noted "
        f"{refund.id} of {refund.amount} with order {state.request.order_id}: look there, and "
        f"note it by hand where it is missing."
    )
    postbox.send(state, notices.alert(state, "order_not_told", words))
