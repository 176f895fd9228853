"""One message over SMTP, with every answer of the server told apart from no answer at all."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

import aiosmtplib

from domain.errors import Misconfigured, NotNow, OutsideError, Refused, Unreachable

# For one command, and for the whole conversation; less than the Activity's start-to-close (60 s).
COMMAND_SECONDS = 15.0
CONVERSATION_SECONDS = 30.0
_SETTING = "NORTHWIND_SMTP_URL"
_DEFAULT_PORTS = {"smtp": 25, "smtp+starttls": 587, "smtps": 465}


@dataclass(frozen=True)
class Delivery:
    """The server took the message, perhaps not for everybody."""

    refused: tuple[str, ...]
    """Recipients that it does not take."""


class MailServer:
    """The mail server of a URL: `smtp://`, `smtps://` or `smtp+starttls://`."""

    def __init__(self, url: str) -> None:
        """Open no connection yet; each message has one of its own."""
        parts = urlsplit(url)
        self._scheme = parts.scheme
        self._host = parts.hostname or ""
        self._port = parts.port or _DEFAULT_PORTS[parts.scheme]
        self._username = unquote(parts.username) if parts.username else None
        self._password = unquote(parts.password) if parts.password else None

    async def send(self, sender: str, recipients: Sequence[str], message: bytes) -> Delivery:
        """Hand over a message.

        Raises:
            Refused: the server does not take it, now or later.
            NotNow: a known "later"; nothing was sent.
            Misconfigured: the server wants other credentials, another sender or TLS.
            Unreachable: no answer; after the message itself it is not known whether it was taken.
        """
        client = aiosmtplib.SMTP(
            hostname=self._host,
            port=self._port,
            username=self._username,
            password=self._password,
            use_tls=self._scheme == "smtps",
            # None: TLS where the server offers it.
            start_tls={"smtp": None, "smtp+starttls": True, "smtps": False}[self._scheme],
            timeout=COMMAND_SECONDS,
        )
        try:
            async with asyncio.timeout(CONVERSATION_SECONDS):
                return await _converse(client, sender, recipients, message)
        except (aiosmtplib.SMTPException, OSError) as error:
            raise _outside_error(error) from None
        finally:
            client.close()


async def _converse(
    client: aiosmtplib.SMTP, sender: str, recipients: Sequence[str], message: bytes
) -> Delivery:
    await client.connect()
    await client.mail(sender)
    refused: list[aiosmtplib.SMTPRecipientRefused] = []
    for recipient in recipients:
        try:
            await client.rcpt(recipient)
        except aiosmtplib.SMTPRecipientRefused as error:
            if error.code < 500:
                # All or none: a second message to those that wait would be a second mail to others.
                raise
            refused.append(error)
    if len(refused) == len(recipients):
        raise refused[0]
    await client.data(message)
    # The message is taken, whatever becomes of the farewell.
    with suppress(aiosmtplib.SMTPException, OSError):
        await client.quit()
    return Delivery(refused=tuple(error.recipient for error in refused))


def _outside_error(error: Exception) -> OutsideError:
    """What an error of the conversation means; words of the server may hold an address."""
    match error:
        case aiosmtplib.SMTPAuthenticationError():
            return Misconfigured(f"the mail server wants other credentials; look at {_SETTING}")
        case aiosmtplib.SMTPResponseException() if 400 <= error.code < 500:
            return NotNow(f"the mail server says not now ({error.code})")
        case aiosmtplib.SMTPSenderRefused():
            return Misconfigured(
                f"the mail server refuses the sender ({error.code}); look at NORTHWIND_MAIL_FROM"
            )
        case aiosmtplib.SMTPConnectResponseError() | aiosmtplib.SMTPHeloError():
            return Misconfigured(f"the mail server does not let us in; look at {_SETTING}")
        case aiosmtplib.SMTPResponseException():
            return Refused("the mail server refuses the mail", code=str(error.code))
        case aiosmtplib.SMTPNotSupported():
            return Misconfigured(f"the mail server lacks what is asked for; look at {_SETTING}")
    return Unreachable(f"no answer from the mail server ({type(error).__name__})")
