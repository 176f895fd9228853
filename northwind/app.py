"""The company's web application: every system's routes in one place."""

from starlette.applications import Starlette

from northwind.control import Control
from northwind.model_api import ModelApi
from northwind.orders import RecordsApi
from northwind.pages import Pages
from northwind.payment_api import PaymentApi
from northwind.systems import Systems
from northwind.wire import Cut

LARGEST_BODY_BYTES = 4 * 1024 * 1024


def create(systems: Systems, cut: Cut) -> Starlette:
    """Put the application together; `cut` closes the connection to a peer at once."""
    parts = (Pages, RecordsApi, PaymentApi, ModelApi, Control)
    app = Starlette(
        routes=[route for part in parts for route in part(systems).routes()],
        max_body_size=LARGEST_BODY_BYTES,
    )
    app.state.cut = cut
    return app
