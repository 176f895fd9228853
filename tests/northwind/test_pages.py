"""The pages show what is there, and what strangers wrote can do nothing in them."""

import httpx

from northwind.server import Company
from tests.northwind.support import letter, send

ATTACK = "<script>alert(1)</script><img src=x onerror=alert(2)>"


async def test_the_mailbox_page_escapes_what_customers_wrote(
    company: Company, http: httpx.AsyncClient
) -> None:
    """Subject, text, HTML part and key appear as text; the page may run and load nothing."""
    message = letter("key/<b>mail.x</b>", subject=f"Hello {ATTACK}")
    message.set_content(f"Text {ATTACK}")
    message.add_alternative(f"<p>Html {ATTACK}</p>", subtype="html")
    await send(company.smtp_url, message)
    page = await http.get("/mailbox")
    assert page.status_code == 200
    assert page.text.count("&lt;script&gt;alert(1)&lt;/script&gt;") == 3
    for tag in ("<script", "<img", "<b>"):
        assert tag not in page.text
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src" not in policy


async def test_the_newest_message_is_on_top(company: Company, http: httpx.AsyncClient) -> None:
    """The page begins with what arrived last, and says how often it was sent."""
    await send(company.smtp_url, letter("a/mail.first", subject="First"))
    for _ in range(3):
        await send(company.smtp_url, letter("a/mail.second", subject="Second"))
    page = (await http.get("/mailbox")).text
    assert page.index("Second") < page.index("First")
    assert "sent 3 times, kept once" in page


async def test_an_empty_mailbox_says_so(http: httpx.AsyncClient) -> None:
    """A new company has no mail, and its page is no blank."""
    assert "No mail yet." in (await http.get("/mailbox")).text


async def test_the_index_links_to_everything(http: httpx.AsyncClient) -> None:
    """Every link of the index works, and each order stands there with its price."""
    index = (await http.get("/")).text
    for path in ("/mailbox", "/books", "/policy", "/staff", "/orders/8890", "/control/faults"):
        assert f'href="{path}"' in index
        assert (await http.get(path)).status_code == 200
    for price in ("$420.00", "¥12,500", "KWD", "45.500", "$1,850.00"):
        assert price in index
