"""JSON over HTTP, as the company's own services speak it: orders, staff directory, policy."""

import asyncio
import ssl
from functools import cache
from typing import Literal, Self, TypeVar

import httpx
from pydantic import BaseModel, ConfigDict, ValidationError

from domain.errors import BadAnswer, Misconfigured, RateLimited, ServerFault, Unreachable

# For one read, from the first byte sent to the last received. The model's tools are local
# Activities of 5 seconds in total, so this must be less.
READ_SECONDS = 4.0
CONNECT_SECONDS = 2.0

Answer = TypeVar("Answer", bound=BaseModel)


class NoSuch(BaseModel):
    """How a service says that it does not know what was asked for."""

    model_config = ConfigDict(extra="ignore")

    error: Literal["no_such_order", "no_such_person"]


@cache
def _trusted() -> ssl.SSLContext:
    """Whose certificates count, as httpx finds them. Reading them takes 50 ms: once a process."""
    return httpx.create_ssl_context()


class CompanyClient:
    """Reads JSON documents; each answer is validated before anybody sees it."""

    def __init__(self, base_url: str) -> None:
        """Open no connection yet.

        Args:
            base_url: Where the services are, without a slash at the end.
        """
        self._http = httpx.AsyncClient(
            base_url=base_url,
            timeout=httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS),
            headers={"Accept": "application/json"},
            verify=_trusted(),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def read(self, what: str, path: str, answer: type[Answer]) -> Answer:
        """Read a document that must be there.

        Args:
            what: A few words for messages, such as `the policy`.
            path: The path below the base URL, already quoted.
            answer: What the document must look like.

        Raises:
            OutsideError: no answer, or one that cannot be used.
        """
        found = await self.find(what, path, answer)
        if found is None:
            raise BadAnswer(f"{what}: the service says that there is none")
        return found

    async def find(self, what: str, path: str, answer: type[Answer]) -> Answer | None:
        """Read a document; None where the service itself says that it has none.

        A 404 alone is not taken for that: a wrong address answers 404 too, and would turn every
        order into an unknown one.

        Raises:
            OutsideError: no answer, or one that cannot be used.
        """
        try:
            async with asyncio.timeout(READ_SECONDS):
                response = await self._http.get(path)
        except (httpx.HTTPError, TimeoutError) as error:
            raise Unreachable(f"{what}: no answer ({type(error).__name__})") from error
        if response.status_code == httpx.codes.NOT_FOUND:
            _parse(what, response, NoSuch)
            return None
        _check_status(what, response)
        return _parse(what, response, answer)


def retry_after_seconds(headers: httpx.Headers) -> float | None:
    """The wait that a server asked for, in seconds; None where it asked for none, or by a date."""
    text = headers.get("Retry-After", "")
    return float(text) if text.isascii() and text.isdigit() else None


def _check_status(what: str, response: httpx.Response) -> None:
    status = response.status_code
    wait = retry_after_seconds(response.headers)
    if status == httpx.codes.TOO_MANY_REQUESTS:
        raise RateLimited(f"{what}: not now (429)", retry_after_seconds=wait)
    if status >= 500:
        raise ServerFault(f"{what}: the service failed ({status})", retry_after_seconds=wait)
    if status >= 400:
        raise Misconfigured(f"{what}: refused ({status}); look at NORTHWIND_COMPANY_URL")
    if status != httpx.codes.OK:
        raise BadAnswer(f"{what}: an unexpected status ({status})")


def _parse(what: str, response: httpx.Response, answer: type[Answer]) -> Answer:
    try:
        return answer.model_validate_json(response.content)
    except ValidationError as error:
        # Where it is wrong may be told; what stands there may be a customer's data.
        first = error.errors(include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the whole"
        raise BadAnswer(f"{what}: an answer of the wrong shape ({place})") from None
