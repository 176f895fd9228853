"""What was typed, held against everything that can be told without asking anybody."""

import uuid
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from domain import names
from domain.money import MoneyError, parse_amount
from domain.request import MESSAGE_LIMIT, RefundRequest
from starters.errors import CommandError, Exit
from starters.statements import plain_address
from workers.settings import LOCAL, Settings

# In the local environment the stand-in company has one support agent.
LOCAL_REQUESTER = "sam.okafor@northwind.example"


@dataclass(frozen=True)
class Wanted:
    """What was typed."""

    order: str
    message: str | None
    message_file: Path | None
    amount: str | None
    request_id: str | None
    new_request: bool
    requester: str | None


def check(settings: Settings, wanted: Wanted) -> RefundRequest:
    """The request as typed, unsigned, with an empty request id where none was given.

    Raises:
        CommandError: anything that can be told to be wrong without asking anybody.
    """
    if not names.is_identifier(wanted.order):
        raise CommandError(f"--order: {wanted.order[:60]!r} can be no order id", Exit.USAGE)
    if wanted.request_id is not None and not names.is_identifier(wanted.request_id):
        raise CommandError(
            f"--request-id: {wanted.request_id[:60]!r} can be no request id", Exit.USAGE
        )
    if wanted.request_id is not None and wanted.new_request:
        raise CommandError("--request-id and --new-request exclude each other", Exit.USAGE)
    if wanted.amount is not None:
        try:
            parse_amount(wanted.amount)
        except MoneyError as error:
            raise CommandError(f"--amount: {error}", Exit.USAGE) from None
    requester = wanted.requester or (LOCAL_REQUESTER if settings.environment == LOCAL else None)
    if requester is None:
        raise CommandError("--as: say who hands the request in, or set NORTHWIND_AS", Exit.USAGE)
    try:
        return RefundRequest(
            environment=settings.environment,
            order_id=wanted.order,
            request_id=wanted.request_id or uuid.uuid4().hex,
            message=_letter(wanted),
            amount=wanted.amount.strip() if wanted.amount is not None else None,
            requester=plain_address(requester),
            statement="",
        )
    except ValidationError as error:
        problem = error.errors()[0]
        raise CommandError(f"{problem['loc'][-1]}: {problem['msg']}", Exit.USAGE) from None


def _letter(wanted: Wanted) -> str:
    if wanted.message is not None and wanted.message_file is None:
        text = wanted.message
    elif wanted.message_file is not None and wanted.message is None:
        text = _read(wanted.message_file)
    else:
        raise CommandError("give either --message or --message-file", Exit.USAGE)
    if not text.strip():
        raise CommandError("the customer's message is empty", Exit.USAGE)
    if len(text) > MESSAGE_LIMIT:
        long = f"{len(text):,} characters; at most {MESSAGE_LIMIT:,} can be handed in"
        raise CommandError(f"the customer's message is too long: {long}", Exit.USAGE)
    return text


def _read(file: Path) -> str:
    # What is longer in bytes is longer in characters too than can be handed in.
    most = 4 * MESSAGE_LIMIT
    try:
        with file.open("rb") as stream:
            raw = stream.read(most + 1)
    except OSError as error:
        raise CommandError(f"--message-file: {file}: {error.strerror}", Exit.USAGE) from None
    if len(raw) > most:
        raise CommandError(f"--message-file: {file} is too long for a message", Exit.USAGE)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise CommandError(f"--message-file: {file} is not UTF-8 text", Exit.USAGE) from None
