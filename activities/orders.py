"""The order service and the refund policy."""

from urllib.parse import quote

from temporalio import activity

from activities.company import CompanyClient
from activities.interfaces import OrderActivities, OrderNotice, OrderReceipt
from activities.watch import NoWatch, Watch
from domain.instants import Instant
from domain.models import Frozen, Order, Policy
from domain.moments import Moment
from domain.money import Money
from domain.names import is_identifier, purpose_of

# An order of thousands of lines would fill the history with what nobody decides by.
ITEMS_KEPT = 100


class NotedRefund(Frozen):
    """What the order service keeps of a refund. Only what stays the same however often it is read:
    the same key must say the same again."""

    refund: str
    amount: Money
    refunded_at: Instant


class Orders(OrderActivities):
    """Reads orders and the policy from the company, and tells it of refunds."""

    def __init__(self, company: CompanyClient, watch: Watch | None = None) -> None:
        """Speak through this client. The watch is told of each refund that is noted."""
        self._company = company
        self._watch = watch or NoWatch()

    @activity.defn
    async def tell_order_service(self, notice: OrderNotice) -> OrderReceipt:
        """Note a refund with its order, once per key; the same again changes nothing.

        Raises:
            Refused: no such order, or another refund is noted under this key.
            OutsideError: it is not known whether it is noted; come again with the same notice.
        """
        refund = notice.refund
        noted = NotedRefund(refund=refund.id, amount=refund.amount, refunded_at=refund.created_at)
        # The key has slashes, and is one part of the path all the same.
        path = f"/orders/{quote(notice.order_id, safe='')}/refunds/{quote(notice.key, safe='')}"
        effect = purpose_of(notice.key)
        await self._watch.at(effect, Moment.BEFORE)
        is_new = await self._company.put(f"refund of order {notice.order_id}", path, noted)
        await self._watch.at(effect, Moment.DONE)
        return OrderReceipt(known_before=not is_new)

    async def read_order(self, order_id: str) -> Order | None:
        """The order as the service spells it, which may differ; None where there is none.

        Raises:
            OutsideError: the service cannot be read.
        """
        # A path of dots would name another document than an order.
        if not is_identifier(order_id):
            return None
        order = await self._company.find(
            f"order {order_id}", f"/orders/{quote(order_id, safe='')}", Order
        )
        return order and order.model_copy(update={"items": order.items[:ITEMS_KEPT]})

    async def read_policy(self) -> Policy:
        """The policy in force.

        Raises:
            OutsideError: the service cannot be read.
        """
        return await self._company.read("the policy", "/policy", Policy)
