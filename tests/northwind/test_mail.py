"""The mail server keeps what it accepted, once per key, and fails as it is told."""

import asyncio
from email.message import EmailMessage
from typing import Any

import aiosmtplib
import httpx
import pytest

from northwind.server import Company
from tests.northwind.support import books, fired, letter, send, set_faults, until

KEY = "local/refund-order-8890/request-1/mail.under_review"
DAY = 24 * 3600


async def mailbox(http: httpx.AsyncClient) -> list[dict[str, Any]]:
    """What lies in the mailbox."""
    messages: list[dict[str, Any]] = (await http.get("/mailbox.json")).json()["messages"]
    return messages


async def test_a_message_is_kept_as_it_was_sent(company: Company, http: httpx.AsyncClient) -> None:
    """Addresses, subject, both parts, headers and key are in the mailbox, whatever the charset."""
    message = letter(KEY, subject="Ihre Rückerstattung für 8890")
    message.add_alternative("<p>We look at it. Ünïcode too.</p>", subtype="html")
    await send(company.smtp_url, message)
    [kept] = await mailbox(http)
    assert kept["from"] == "refunds@northwind.example"
    assert kept["to"] == ["ada.park@customers.example"]
    assert kept["subject"] == "Ihre Rückerstattung für 8890"
    assert kept["text"].strip() == "We look at it. Ünïcode too."
    assert kept["html"].strip() == "<p>We look at it. Ünïcode too.</p>"
    assert (kept["key"], kept["message_id"]) == (KEY, "<one@northwind.example>")
    assert kept["headers"]["Resend-Idempotency-Key"] == KEY
    assert kept["received_at"].endswith("Z")
    [mail] = (await books(http))["mails"]
    assert (mail["purpose"], mail["deliveries"]) == ("mail.under_review", 1)


async def test_a_message_without_a_key_is_kept_each_time(
    company: Company, http: httpx.AsyncClient
) -> None:
    """Without a key nothing says that two messages are one."""
    await send(company.smtp_url, letter())
    await send(company.smtp_url, letter())
    assert [mail["key"] for mail in (await books(http))["mails"]] == [None, None]


@pytest.mark.parametrize(("age", "deliveries"), [(0, [2]), (DAY - 60, [2]), (DAY, [1, 1])])
async def test_a_key_keeps_a_repeat_out_for_24_hours(
    company: Company, http: httpx.AsyncClient, age: int, deliveries: list[int]
) -> None:
    """A repeat within 24 hours is accepted, counted and not kept; a later one is a new message."""
    await send(company.smtp_url, letter(KEY))
    await http.post("/control/clock", json={"advance_seconds": age})
    await send(company.smtp_url, letter(KEY))
    assert [mail["deliveries"] for mail in (await books(http))["mails"]] == deliveries
    await send(company.smtp_url, letter("another/key/mail.refunded"))
    assert len(await mailbox(http)) == len(deliveries) + 1


async def test_a_server_may_know_no_keys(company: Company, http: httpx.AsyncClient) -> None:
    """Told to ignore keys, the mail server keeps every message."""
    assert (await http.post("/control/mail", json={"knows_keys": False})).status_code == 200
    await send(company.smtp_url, letter(KEY))
    await send(company.smtp_url, letter(KEY))
    assert [mail["deliveries"] for mail in (await books(http))["mails"]] == [1, 1]


MAIL_FAULTS = [
    ({"what": "fail_before"}, aiosmtplib.SMTPDataError, 451, 0),
    ({"what": "status", "status": 550, "body": "No."}, aiosmtplib.SMTPDataError, 550, 0),
    ({"what": "status", "status": 451, "stage": "rcpt"}, aiosmtplib.SMTPRecipientsRefused, 451, 0),
    ({"what": "drop_before"}, aiosmtplib.SMTPServerDisconnected, None, 0),
    ({"what": "drop_before", "stage": "rcpt"}, aiosmtplib.SMTPServerDisconnected, None, 0),
    ({"what": "drop_after"}, aiosmtplib.SMTPServerDisconnected, None, 1),
    ({"what": "ok_without_effect"}, None, None, 0),
    ({"what": "delay", "seconds": 0.01}, None, None, 1),
]


@pytest.mark.parametrize(("fault", "error", "code", "kept"), MAIL_FAULTS)
async def test_a_faulty_send_does_what_the_row_says(
    company: Company,
    http: httpx.AsyncClient,
    fault: dict[str, Any],
    error: type[aiosmtplib.SMTPException] | None,
    code: int | None,
    kept: int,
) -> None:
    """The sender sees the fault, the mailbox holds what was really kept, and the next one works."""
    await set_faults(http, {"system": "mail", "operation": "send"} | fault)
    if error is None:
        await send(company.smtp_url, letter(KEY))
    else:
        with pytest.raises(error) as failed:
            await send(company.smtp_url, letter(KEY))
        if isinstance(failed.value, aiosmtplib.SMTPRecipientsRefused):
            assert [refused.code for refused in failed.value.recipients] == [code]
        elif code is not None:
            assert getattr(failed.value, "code", None) == code
    assert len(await mailbox(http)) == kept
    await send(company.smtp_url, letter(KEY))
    assert len(await mailbox(http)) == 1
    assert await fired(http) == [1]
    assert (await books(http))["calls"]["send"] == 2


async def test_one_recipient_may_be_refused(company: Company, http: httpx.AsyncClient) -> None:
    """The message goes to the others, and to them alone."""
    row = {"system": "mail", "operation": "send", "what": "status", "status": 550}
    await set_faults(http, row | {"stage": "rcpt", "recipient": "left@customers.example"})
    message = letter(KEY)
    message.replace_header("To", "ada.park@customers.example, left@customers.example")
    await send(company.smtp_url, message)
    [kept] = await mailbox(http)
    assert kept["to"] == ["ada.park@customers.example"]


async def test_a_message_arrives_although_its_sender_hung_up(
    company: Company, http: httpx.AsyncClient
) -> None:
    """Who gives up after DATA does not know; the server keeps the message all the same."""
    row = {"system": "mail", "operation": "send", "what": "delay", "seconds": 0.3}
    await set_faults(http, row)
    host, _, port = company.smtp_url.removeprefix("smtp://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    sender, recipient = "a@northwind.example", "b@customers.example"
    for line in ("EHLO me", f"MAIL FROM:<{sender}>", f"RCPT TO:<{recipient}>", "DATA"):
        writer.write(f"{line}\r\n".encode())
    writer.write(b"Subject: Hello\r\n\r\nText\r\n.\r\n")
    await writer.drain()
    await reader.readuntil(b"354 ")
    # The company runs on this event loop: once it has answered this, it has read the message.
    await http.get("/health")
    assert await mailbox(http) == []
    writer.close()
    await writer.wait_closed()

    async def arrived() -> bool:
        return len(await mailbox(http)) == 1

    await until(arrived)


ODD = [
    b"Subject: \xff\xfe\r\nResend-Idempotency-Key: k\xff\r\n\r\nbytes \xff\r\n",
    b"Content-Type: text/plain; charset=no-such-charset\r\n\r\nhello\r\n",
    b"no headers at all\r\n",
    b"\r\n",
    b"Content-Type: multipart/mixed; boundary=x\r\n\r\nno parts\r\n",
]


@pytest.mark.parametrize("content", ODD)
async def test_odd_messages_are_kept_too(
    company: Company, http: httpx.AsyncClient, content: bytes
) -> None:
    """A message that is hardly one is accepted, and shown as well as can be."""
    host, _, port = company.smtp_url.removeprefix("smtp://").partition(":")
    async with aiosmtplib.SMTP(hostname=host, port=int(port)) as smtp:
        await smtp.sendmail("a@northwind.example", ["b@customers.example"], content)
    assert len(await mailbox(http)) == 1
    assert (await http.get("/mailbox")).status_code == 200


async def test_a_huge_message_is_refused(company: Company, http: httpx.AsyncClient) -> None:
    """Above 10 MB the answer is 552, and the mailbox stays empty."""
    message = EmailMessage()
    message["From"], message["To"] = "a@northwind.example", "b@customers.example"
    message.set_content("x" * 60 + "\n")
    message.add_attachment(bytes(9 * 1024 * 1024), maintype="application", subtype="octet-stream")
    with pytest.raises(aiosmtplib.SMTPResponseException) as refused:
        await send(company.smtp_url, message)
    assert refused.value.code == 552
    assert await mailbox(http) == []
