"""The company's mail server: SMTP in, one mailbox, keys that keep a repeat from arriving twice."""

import asyncio
import email
import email.policy
import json
import socket
import sqlite3
from email.message import EmailMessage
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from aiosmtpd.smtp import SMTP, Envelope, Session

from northwind.clock import instant_text
from northwind.documents import instant_of
from northwind.faults import FaultRow, Plan
from northwind.store import read_setting, write_setting
from northwind.systems import Systems

# Resend documents this header for its SMTP service.
KEY_HEADER = "Resend-Idempotency-Key"
KEPT_SECONDS = 24 * 3600
KNOWS_KEYS = "mail_knows_keys"
LARGEST_MESSAGE_BYTES = 10 * 1024 * 1024
ACCEPTED = "250 OK"
CLOSING = "421 Service closing"


def knows_keys(db: sqlite3.Connection) -> bool:
    """Whether the mail server heeds the key header; it does until it is told not to."""
    return read_setting(db, KNOWS_KEYS) != "no"


def set_knows_keys(db: sqlite3.Connection, known: bool) -> None:
    """Make the mail server heed the key header, or be one of those that know no keys."""
    write_setting(db, KNOWS_KEYS, "yes" if known else "no")


def deliver(db: sqlite3.Connection, envelope: Envelope, now: float) -> None:
    """Put a message in the mailbox, or count it where its key has been here within 24 hours."""
    content = envelope.original_content or b""
    parsed = email.message_from_bytes(content, policy=email.policy.default)
    key = _header(parsed, KEY_HEADER)
    if key and knows_keys(db):
        again = db.execute(
            "update mails set deliveries = deliveries + 1 where id ="
            " (select id from mails where key = ? and received > ? order by id limit 1)",
            (key, now - KEPT_SECONDS),
        )
        if again.rowcount:
            return
    db.execute(
        "insert into mails (received, key, deliveries, message_id, sender, recipients, subject,"
        " body_text, body_html, headers) values (?, ?, 1, ?, ?, ?, ?, ?, ?, ?)",
        (
            now,
            key or None,
            _header(parsed, "Message-ID"),
            _storable(envelope.mail_from or ""),
            json.dumps(envelope.rcpt_tos),
            _header(parsed, "Subject"),
            _body(parsed, "plain") or "",
            _body(parsed, "html"),
            json.dumps({name: str(value) for name, value in parsed.items()}),
        ),
    )


def _body(message: EmailMessage, subtype: str) -> str | None:
    part = message.get_body(preferencelist=(subtype,))
    if part is None:
        return None
    try:
        return _storable(str(part.get_content()))
    except (LookupError, UnicodeError):
        # An unknown charset: show what can be shown.
        return bytes(part.get_payload(decode=True) or b"").decode(errors="replace")


def _header(message: EmailMessage, name: str) -> str:
    return _storable(str(message.get(name, "")).strip())


def _key(envelope: Envelope) -> str:
    content = envelope.original_content or b""
    return _header(email.message_from_bytes(content, policy=email.policy.default), KEY_HEADER)


def _storable(text: str) -> str:
    """The text with bytes that were no UTF-8 replaced: a database keeps no half characters."""
    return text.encode(errors="replace").decode()


def mailbox(db: sqlite3.Connection) -> list[dict[str, Any]]:
    """All messages, oldest first, as /mailbox.json shows them."""
    return [
        {
            "id": row["id"],
            "received_at": instant_text(instant_of(row["received"])),
            "message_id": row["message_id"],
            "key": row["key"],
            "from": row["sender"],
            "to": json.loads(row["recipients"]),
            "subject": row["subject"],
            "text": row["body_text"],
            "html": row["body_html"],
            "headers": json.loads(row["headers"]),
            "deliveries": row["deliveries"],
        }
        for row in db.execute("select * from mails order by id")
    ]


class MailHandler:
    """Takes messages from SMTP sessions, and suffers the fault plan.

    A send is counted at MAIL FROM. A fault strikes once the message has been read (DATA), or at
    the recipients where its row says `"stage": "rcpt"`.
    """

    def __init__(self, systems: Systems) -> None:
        """Deliver into the company's database."""
        self._systems = systems
        self._plans: WeakKeyDictionary[Session, Plan] = WeakKeyDictionary()
        self._deliveries: set[asyncio.Task[bool]] = set()

    async def handle_MAIL(  # noqa: N802 (the name that aiosmtpd looks for)
        self,
        server: SMTP,
        session: Session,
        envelope: Envelope,
        address: str,
        options: list[str],
    ) -> str:
        """Begin a message: count the call, and keep what is to go wrong in it."""
        envelope.mail_from = address
        envelope.mail_options.extend(options)
        self._plans[session] = self._systems.faults.take("send")
        return ACCEPTED

    async def handle_RCPT(  # noqa: N802 (aiosmtpd looks for it)
        self,
        server: SMTP,
        session: Session,
        envelope: Envelope,
        address: str,
        options: list[str],
    ) -> str:
        """Take a recipient, or refuse it where the plan says so."""
        fault = self._plans[session].at("rcpt")
        if fault is not None and fault.recipient in (None, address):
            return await self._go_wrong(server, fault)
        envelope.rcpt_tos.append(address)
        envelope.rcpt_options.extend(options)
        return ACCEPTED

    async def handle_DATA(  # noqa: N802 (aiosmtpd looks for it)
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        """Deliver the message that has been read, and answer as the plan says."""
        # Only now one can see what the mail is about.
        about = self._systems.faults.take_about("send", _key(envelope))
        plan = self._plans[session].and_then(about)
        # The delivery goes on when the sender hangs up meanwhile, as in a real server.
        delivery = asyncio.create_task(self._deliver(plan, envelope))
        self._deliveries.add(delivery)
        delivery.add_done_callback(self._deliveries.discard)
        if not await asyncio.shield(delivery):
            return CLOSING
        fault = plan.at("data")
        return ACCEPTED if fault is None else await self._go_wrong(server, fault)

    async def _deliver(self, plan: Plan, envelope: Envelope) -> bool:
        if not await self._systems.faults.wait(plan):
            return False
        fault = plan.at("data")
        if fault is None or fault.what in ("drop_after", "hang_after"):
            with self._systems.store.transaction() as db:
                deliver(db, envelope, self._systems.clock.now().timestamp())
        return True

    async def _go_wrong(self, server: SMTP, fault: FaultRow) -> str:
        match fault.what:
            case "ok_without_effect":
                return ACCEPTED
            case "hang_after":
                await self._systems.faults.closing()
                return CLOSING
            case "drop_before" | "drop_after":
                _cut(server)
                # The lost connection ends the session's task: nothing is sent after this.
                await asyncio.get_running_loop().create_future()
                return ACCEPTED
            case _:
                status = fault.status or 451
                return f"{status} {fault.body or 'Requested action not taken'}"


class MailServer:
    """The SMTP side of the mail server, on the running event loop."""

    def __init__(self, systems: Systems) -> None:
        """Deliver into the company's database."""
        self._handler = MailHandler(systems)
        self._connections: WeakSet[SMTP] = WeakSet()

    async def serve(self, listener: socket.socket) -> None:
        """Take connections from the listening socket until `close` is called."""
        self._server = await asyncio.get_running_loop().create_server(
            self._connection, sock=listener
        )

    def close(self) -> None:
        """Take no more connections, and cut those that are open."""
        self._server.close()
        for connection in list(self._connections):
            _cut(connection)

    def _connection(self) -> SMTP:
        connection = SMTP(
            self._handler,
            data_size_limit=LARGEST_MESSAGE_BYTES,
            enable_SMTPUTF8=True,
            hostname="mail.northwind.example",
            ident="Northwind",
        )
        self._connections.add(connection)
        return connection


def _cut(connection: SMTP) -> None:
    if isinstance(connection.transport, asyncio.Transport):
        connection.transport.abort()
