"""Cutting a connection without an answer, which no ordinary response can do."""

from collections.abc import Callable

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

Peer = tuple[str, int]
Cut = Callable[[Peer], None]


class DroppedConnection(Response):
    """The "response" of a server that dies before it answers: not one byte.

    The application's state has `cut`, which closes the connection to a peer at once.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Close the connection, and wait until the server has seen that it is closed."""
        scope["app"].state.cut(tuple(scope["client"]))
        while (await receive())["type"] != "http.disconnect":
            pass
