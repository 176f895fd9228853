"""JSON over HTTP, as the company's own services speak it: orders, staff directory, policy."""

import asyncio
import ssl
from functools import cache
from typing import Annotated, Literal, Self, TypeVar

import httpx
from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from domain.errors import (
    BadAnswer,
    Misconfigured,
    RateLimited,
    Refused,
    ServerFault,
    Unreachable,
)

# For one call, from the first byte sent to the last received. The model's tools are local
# Activities of 5 seconds in total, so this must be less.
READ_SECONDS = 4.0
CONNECT_SECONDS = 2.0

# Answers of a service that has understood what is to be written and does not take it.
_DEFINITE = (
    httpx.codes.BAD_REQUEST,
    httpx.codes.NOT_FOUND,
    httpx.codes.CONFLICT,
    httpx.codes.UNPROCESSABLE_ENTITY,
)

Answer = TypeVar("Answer", bound=BaseModel)


class NoSuch(BaseModel):
    """How a service says that it does not know what was asked for."""

    model_config = ConfigDict(extra="ignore")

    error: Literal["no_such_order", "no_such_person"]


@cache
def _trusted() -> ssl.SSLContext:
    """Whose certificates count, as httpx finds them. Reading them takes 50 ms: once a process."""
    return httpx.create_ssl_context()


class No(BaseModel):
    """How a service says no to something, in a word of its own."""

    model_config = ConfigDict(extra="ignore")

    error: Annotated[str, StringConstraints(pattern=r"^[a-z_]{1,64}$")]


class CompanyClient:
    """Reads and writes JSON documents; each answer is validated before anybody sees it."""

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
        response = await self._send(what, "GET", path)
        if response.status_code == httpx.codes.NOT_FOUND:
            _parse(what, response, NoSuch)
            return None
        _check_status(what, response)
        return _parse(what, response, answer)

    async def put(self, what: str, path: str, document: BaseModel) -> bool:
        """Write a document under an address of its own; the same again changes nothing.

        Whether it is new there. An answer that does not show the document itself is none.

        Raises:
            Refused: a definite no of the service itself, with its word.
            OutsideError: no answer, or one that cannot be used: it is not known whether it is
                written.
        """
        response = await self._send(what, "PUT", path, document.model_dump_json())
        if response.status_code in _DEFINITE:
            word = _parse(what, response, No).error
            raise Refused(f"{what}: refused ({word})", code=word)
        is_new = response.status_code == httpx.codes.CREATED
        if not is_new:
            _check_status(what, response)
        if _parse(what, response, type(document)) != document:
            raise BadAnswer(f"{what}: the service answers with another document")
        return is_new

    async def _send(
        self, what: str, method: str, path: str, content: str | None = None
    ) -> httpx.Response:
        headers = {"Content-Type": "application/json"} if content is not None else {}
        try:
            async with asyncio.timeout(READ_SECONDS):
                return await self._http.request(method, path, content=content, headers=headers)
        except (httpx.HTTPError, TimeoutError) as error:
            raise Unreachable(f"{what}: no answer ({type(error).__name__})") from error


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
