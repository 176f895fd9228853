"""The pages for people: an index of the company, and its mailbox."""

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from northwind.clock import instant_text
from northwind.documents import Order, find_all
from northwind.mail import mailbox
from northwind.payment_objects import held_minor, money_text
from northwind.systems import Systems

# The pages show what strangers wrote. Nothing in it may run, load or send anything.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
}


class Pages:
    """HTML, with every value escaped."""

    def __init__(self, systems: Systems) -> None:
        """Show what is in the company's database."""
        self._systems = systems
        self._templates = Environment(
            loader=PackageLoader("northwind"), autoescape=True, undefined=StrictUndefined
        )

    def routes(self) -> list[Route]:
        """The pages, the mailbox as JSON, and the health check."""
        return [
            Route("/", self._index),
            Route("/mailbox", self._mailbox),
            Route("/mailbox.json", self._mailbox_json),
            Route("/health", self._health),
        ]

    async def _index(self, request: Request) -> Response:
        with self._systems.store.transaction() as db:
            orders = [
                {
                    "id": order.id,
                    "customer": order.customer.name,
                    "items": ", ".join(item.name for item in order.items),
                    "total": money_text(order.total.amount_minor, order.total.currency),
                    "held": held_minor(db, order.payment),
                    "refunded": money_text(held_minor(db, order.payment), order.total.currency),
                }
                for order in find_all(db, Order)
            ]
        return self._page("index.html", orders=orders)

    async def _mailbox(self, request: Request) -> Response:
        with self._systems.store.transaction() as db:
            messages = mailbox(db)
        return self._page("mailbox.html", messages=messages[::-1])

    async def _mailbox_json(self, request: Request) -> Response:
        with self._systems.store.transaction() as db:
            return JSONResponse({"messages": mailbox(db)})

    async def _health(self, request: Request) -> Response:
        return JSONResponse({"ok": True})

    def _page(self, template: str, **values: object) -> Response:
        now = instant_text(self._systems.clock.now())
        text = self._templates.get_template(template).render(now=now, **values)
        return HTMLResponse(text, headers=HEADERS)
