"""Mails, each sent once per key: written down before it is sent, and sent again as it was written.

Where the mail server knows idempotency keys, a repeat is not delivered. At one that knows none, a
worker that is killed between the server's yes and the ledger's row sends the same message, with the
same Message-ID, once more.
"""

import hashlib
from datetime import datetime, timedelta
from email.errors import HeaderParseError
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP

from temporalio import activity

from activities.clock import Clock, system_clock
from activities.interfaces import MailActivities
from activities.ledger import Entry, EntryState, Ledger
from activities.mail_text import MailWriter, one_line
from activities.smtp import MailServer
from activities.watch import NoWatch, Watch
from domain.errors import NotNow, Refused
from domain.mail import TO_OPERATIONS, MailOrder, MailReceipt, MailState
from domain.models import Contact, Frozen
from domain.moments import Moment
from domain.names import purpose_of

# Documented by Resend for its SMTP service: a message whose key was seen within 24 hours is taken
# and not delivered again. Other servers ignore it.
KEY_HEADER = "Resend-Idempotency-Key"
# Long enough for the conversation (30 s) and the ledger's waits (10 s each), and over before the
# next attempt comes: when a killed one's Activity has timed out (60 s).
ATTEMPT = timedelta(seconds=50)
# Nothing is folded: keys and ids have no spaces, and folding would encode them beyond recognition.
_POLICY = SMTP.clone(max_line_length=900, cte_type="7bit")


class Envelope(Frozen):
    """A written message with its addresses, as it waits in the ledger."""

    sender: str
    recipients: tuple[str, ...]
    message_id: str
    content: str
    """The whole message in ASCII."""


class Mailer(MailActivities):
    """Writes mails and hands them to a mail server."""

    def __init__(
        self,
        server: MailServer,
        ledger: Ledger,
        sender: str,
        operations: str,
        clock: Clock = system_clock,
        watch: Watch | None = None,
    ) -> None:
        """Send through this server, once per key of this ledger.

        Args:
            server: Where messages go.
            ledger: Remembers them.
            sender: The address in From.
            operations: Who hears of an alert when the policy could not be read.
            clock: For the date in messages.
            watch: Is told of each mail.
        """
        self._server = server
        self._ledger = ledger
        self._sender = sender
        self._operations = operations
        self._clock = clock
        self._watch = watch or NoWatch()
        self._writer = MailWriter()

    @activity.defn
    async def send_mail(self, order: MailOrder) -> MailReceipt:
        """Send a mail once per key, whatever happens in between.

        Raises:
            OutsideError: not sent, or not known; come again with the same order.
        """
        message_id = _message_id(order.key, self._sender)
        if not order.to and order.purpose in TO_OPERATIONS:
            order = order.model_copy(update={"to": (self._fallback(),)})
        try:
            prepared = self._write(order, message_id)
        except _NoAddress as problem:
            return MailReceipt(state=MailState.REFUSED, message_id=message_id, detail=str(problem))
        digest = hashlib.sha256(order.model_dump_json().encode()).hexdigest()
        entry = await self._ledger.claim(order.key, digest, prepared.model_dump_json(), ATTEMPT)
        match entry.state:
            case EntryState.FINISHED:
                return _earlier(entry)
            case EntryState.HELD:
                wait = entry.held_for.total_seconds()
                raise NotNow("another attempt sends this mail", retry_after_seconds=wait)
            case EntryState.CLAIMED:
                return await self._send(entry)

    async def _send(self, entry: Entry) -> MailReceipt:
        # What was written first is sent, whatever templates and facts say by now: the server may
        # have it already, and must not see another message under the same key.
        envelope = Envelope.model_validate_json(entry.prepared)
        effect = purpose_of(entry.key)
        await self._watch.at(effect, Moment.BEFORE)
        try:
            delivery = await self._server.send(
                envelope.sender, envelope.recipients, envelope.content.encode("ascii")
            )
            detail = f"refused: {', '.join(delivery.refused)}" if delivery.refused else ""
            receipt = MailReceipt(
                state=MailState.SENT,
                message_id=envelope.message_id,
                detail=detail[:300],
                refused=delivery.refused,
            )
        except Refused as error:
            receipt = MailReceipt(
                state=MailState.REFUSED,
                message_id=envelope.message_id,
                detail=f"{error} ({error.code})",
            )
        except BaseException:
            await self._ledger.release(entry)
            raise
        await self._watch.at(effect, Moment.DONE)
        await self._ledger.finish(entry.key, receipt.model_dump_json())
        await self._watch.at(effect, Moment.RECORDED)
        return receipt

    def _fallback(self) -> Contact:
        return Contact(name="Refund operations", address=self._operations)

    def _write(self, order: MailOrder, message_id: str) -> Envelope:
        text = self._writer.write(order)
        message = EmailMessage(policy=_POLICY)
        message["From"] = _address(Contact(name="Northwind", address=self._sender))
        message["To"] = _addresses(order.to)
        message["Subject"] = text.subject
        message["Date"] = self._now()
        message["Message-ID"] = message_id
        message["Auto-Submitted"] = "auto-generated"
        message[KEY_HEADER] = order.key
        message.set_content(text.plain)
        message.add_alternative(text.html, subtype="html")
        return Envelope(
            sender=self._sender,
            recipients=tuple(contact.address for contact in order.to),
            message_id=message_id,
            content=message.as_bytes().decode("ascii"),
        )

    def _now(self) -> datetime:
        return self._clock().replace(microsecond=0)


class _NoAddress(ValueError):
    """A mail that can go to nobody; the message is one line."""


def _addresses(to: tuple[Contact, ...]) -> tuple[Address, ...]:
    if not to:
        raise _NoAddress("nobody to write to")
    return tuple(_address(contact) for contact in to)


def _address(contact: Contact) -> Address:
    if not contact.address.isascii() or not contact.address.isprintable():
        raise _NoAddress("an address with other than ASCII characters")
    try:
        return Address(display_name=one_line(contact.name, 100), addr_spec=contact.address)
    except (HeaderParseError, ValueError, IndexError):
        raise _NoAddress("an address that is none") from None


def _earlier(entry: Entry) -> MailReceipt:
    """What an earlier attempt came to: sent is sent already, refused stays refused."""
    receipt = MailReceipt.model_validate_json(entry.result or "")
    if receipt.state is MailState.REFUSED:
        return receipt
    return receipt.model_copy(update={"state": MailState.ALREADY_SENT})


def _message_id(key: str, sender: str) -> str:
    """The same for every attempt, and telling nothing of the key."""
    digest = hashlib.sha256(key.encode()).hexdigest()[:40]
    return f"<{digest}@{sender.rpartition('@')[2]}>"
