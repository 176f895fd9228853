"""The order service and the refund policy."""

from urllib.parse import quote

from activities.company import CompanyClient
from domain.models import Order, Policy
from domain.names import is_identifier

# An order of thousands of lines would fill the history with what nobody decides by.
ITEMS_KEPT = 100


class Orders:
    """Reads orders and the policy from the company."""

    def __init__(self, company: CompanyClient) -> None:
        """Read through this client."""
        self._company = company

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
