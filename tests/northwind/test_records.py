"""Orders, staff and policy tell the stories of the seed, consistently."""

import base64
import re
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from northwind.server import Company
from tests.northwind.support import books, client_of


def days_ago(instant: str) -> float:
    """How many days ago an instant on the wire is."""
    assert instant.endswith("Z")
    return (datetime.now(UTC) - datetime.fromisoformat(instant)) / timedelta(days=1)


STORIES = [
    ("8890", 42000, "USD", 6, 0),
    ("8891", 3500, "USD", 6, 0),
    ("8892", 185000, "USD", 6, 0),
    ("8893", 12500, "JPY", 6, 0),
    ("8894", 45500, "KWD", 6, 0),
    ("8895", 18000, "USD", 75, 0),
    ("8896", 25000, "USD", 6, 12000),
    ("8897", 9000, "USD", 6, 9000),
    ("8898", 31000, "USD", 6, 0),
    ("8899", 100000, "USD", 6, 0),
]


async def test_each_order_tells_its_story(
    http: httpx.AsyncClient, subtests: pytest.Subtests
) -> None:
    """Price, delivery and earlier refunds of each order are those that its story needs."""
    for order_id, minor, currency, delivered, refunded in STORIES:
        with subtests.test(order_id=order_id):
            order = (await http.get(f"/orders/{order_id}")).json()
            assert order["total"] == {"amount_minor": minor, "currency": currency}
            assert days_ago(order["delivered_at"]) == pytest.approx(delivered, abs=0.01)
            assert days_ago(order["placed_at"]) > days_ago(order["delivered_at"])
            payment = (await books(http))["payments"][order["payment"]]
            assert payment["captured"] == order["total"]
            assert payment["refunded_minor"] == refunded
            assert payment["disputed"] == (order_id == "8898")


async def test_each_order_has_its_own_customer(http: httpx.AsyncClient) -> None:
    """No two orders share a customer, so that a mail shows which run it belongs to."""
    orders = (await http.get("/orders")).json()["orders"]
    assert len({order["customer"]["email"] for order in orders}) == len(STORIES)


async def test_leading_zeros_are_ignored(http: httpx.AsyncClient) -> None:
    """The order service is forgiving, and answers with its own spelling."""
    for spelling in ("8890", "08890", "0008890"):
        assert (await http.get(f"/orders/{spelling}")).json()["id"] == "8890"


async def test_an_unknown_order_is_not_found(http: httpx.AsyncClient) -> None:
    """There is one answer for an order that does not exist."""
    for unknown in ("8889", "0", "889", "8890x", "%20", "x" * 3000):
        answer = await http.get(f"/orders/{unknown}")
        assert (answer.status_code, answer.json()) == (404, {"error": "no_such_order"})


async def test_staff_have_roles_limits_and_keys(http: httpx.AsyncClient) -> None:
    """A support agent, two managers, a finance director, and a manager who has left."""
    people = {p["name"]: p for p in (await http.get("/staff")).json()["people"]}
    roles = {name: person["roles"] for name, person in people.items()}
    assert roles == {
        "Sam Okafor": ["support"],
        "Maria Silva": ["manager"],
        "Tom Becker": ["manager"],
        "Grace Lin": ["finance_director"],
        "Victor Hale": ["manager"],
    }
    assert [name for name, person in people.items() if not person["active"]] == ["Victor Hale"]
    [left] = people["Victor Hale"]["keys"]
    assert days_ago(left["valid_until"]) > 0
    assert people["Sam Okafor"]["limits"] == []
    assert {"amount_minor": 50000, "currency": "USD"} in people["Tom Becker"]["limits"]
    assert {limit["currency"] for limit in people["Maria Silva"]["limits"]} == {
        "USD",
        "EUR",
        "JPY",
    }
    one = await http.get("/staff/maria.silva@northwind.example")
    assert one.json() == people["Maria Silva"]
    assert (await http.get("/staff/Maria.Silva@northwind.example")).status_code == 404


async def test_private_keys_fit_the_directory_and_are_private(
    company: Company, http: httpx.AsyncClient
) -> None:
    """Each person's key file signs what the directory's key verifies; only its owner reads it."""
    assert stat.S_IMODE(company.keys.stat().st_mode) == 0o700
    for person in (await http.get("/staff")).json()["people"]:
        file = company.keys / f"{person['address']}.pem"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        private = load_pem_private_key(file.read_bytes(), password=None)
        assert isinstance(private, Ed25519PrivateKey)
        [key] = person["keys"]
        assert key["algorithm"] == "Ed25519"
        assert key["signs_for"] == [person["address"]]
        assert days_ago(key["valid_from"]) > 0
        public = base64.urlsafe_b64decode(key["public"] + "=")
        assert private.public_key().public_bytes_raw() == public


async def test_no_two_companies_share_a_key(tmp_path: Path) -> None:
    """Keys are made at random when a folder is seeded: a stranger knows none of them."""
    files = []
    for name in ("one", "two"):
        async with Company(tmp_path / name) as company:
            files += [file.read_bytes() for file in company.keys.iterdir()]
    assert len(set(files)) == len(files) == 10


async def test_a_start_mends_what_a_killed_first_start_left(tmp_path: Path) -> None:
    """A key file without an entry in the directory is replaced by one that has an entry."""
    leftover = tmp_path / "keys" / "maria.silva@northwind.example.pem"
    leftover.parent.mkdir(mode=0o700)
    leftover.write_text("half a key")
    async with Company(tmp_path) as company, client_of(company.http_url) as http:
        [key] = (await http.get("/staff/maria.silva@northwind.example")).json()["keys"]
        private = load_pem_private_key(leftover.read_bytes(), password=None)
    assert isinstance(private, Ed25519PrivateKey)
    public = base64.urlsafe_b64decode(key["public"] + "=")
    assert private.public_key().public_bytes_raw() == public
    assert stat.S_IMODE(leftover.stat().st_mode) == 0o600


async def test_a_second_start_keeps_everything(tmp_path: Path) -> None:
    """The same folder gives the same orders, keys and clock, and is not seeded again."""
    seen: list[Any] = []
    for _ in range(2):
        async with (
            Company(tmp_path) as company,
            client_of(company.http_url) as http,
        ):
            if not seen:
                await http.post("/control/clock", json={"advance_seconds": 86400})
                await http.post("/control/hand_refund", json={"payment": "pi_8890"})
            paths = ("/orders", "/staff", "/policy", "/books")
            seen.append([(await http.get(path)).json() for path in paths])
            now = (await http.get("/control/clock")).json()["now"]
            assert days_ago(now) == pytest.approx(-1, abs=0.01)
    assert [state[:3] for state in seen] == [seen[0][:3]] * 2
    assert seen[0][3]["payments"] == seen[1][3]["payments"]


async def test_the_policys_text_agrees_with_its_numbers(http: httpx.AsyncClient) -> None:
    """What a reader of the clauses learns is what code decides by."""
    policy = (await http.get("/policy")).json()
    text = re.sub(r"\s+", " ", policy["text"])
    assert policy["version"] in text
    assert f"within {policy['return_window_days']} days" in text
    assert f"{policy['reminder_after_hours']} hours" in text
    assert f"{policy['escalate_after_hours']} hours" in text
    assert f"{policy['expire_after_hours']} hours" in text
    for table in ("auto_approve_up_to", "one_manager_up_to"):
        limits = policy[table]
        assert set(limits) == {"USD", "EUR", "JPY"}
        assert f"${limits['USD'] / 100:,.2f}" in text
        assert f"€{limits['EUR'] / 100:,.2f}" in text
        assert f"¥{limits['JPY']:,}" in text
    assert re.findall(r"§(\d+)", text) == [str(number) for number in range(1, 11)]
