"""Signed statements: what is forged, stale or without right does not count (promise P2)."""

import base64
import json
import time
from datetime import UTC, datetime
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from activities.decisions import Decisions, refuse_signature
from activities.interfaces import StatementCheck
from domain.errors import Unreachable
from domain.models import Person
from domain.request import RefundRequest
from domain.statements import StatementKind
from domain.trail import Refusal
from tests.activities.support import proposal, usd
from tests.northwind.support import set_faults
from tests.signing import GRACE, MARIA, SAM, TOM, VICTOR, Signer
from workers.wiring import Activities

ADA = "ada.park@customers.example"


@pytest.fixture
def decisions(activities: Activities) -> Decisions:
    """The adapter."""
    return activities.decisions


def check(token: str, **changes: Any) -> StatementCheck:
    """What the run asks about a decision that has just come in."""
    fields = {
        "environment": "local",
        "token": token,
        "kind": StatementKind.DECISION,
        "proposal": proposal(),
        "requester": SAM,
        "customer": ADA,
        "received_at": datetime.now(UTC),
        **changes,
    }
    return StatementCheck.model_validate(fields)


async def refusal(decisions: Decisions, token: str, **changes: Any) -> Refusal | None:
    """Why it does not count."""
    return (await decisions.verify_statement(check(token, **changes))).refusal


async def change(http: httpx.AsyncClient, address: str, **changes: Any) -> None:
    """Change somebody in the staff directory."""
    answer = await http.post(f"/control/staff/{address}", json=changes)
    assert answer.is_success, answer.text


async def keys_of(http: httpx.AsyncClient, address: str) -> list[dict[str, Any]]:
    """Somebody's public keys."""
    keys: list[dict[str, Any]] = (await http.get(f"/staff/{address}")).json()["keys"]
    return keys


@pytest.mark.parametrize("verdict", ["approve", "reject"])
@pytest.mark.parametrize("by", [MARIA, GRACE])
async def test_a_decision_of_one_who_may_counts(
    decisions: Decisions, signer: Signer, by: str, verdict: str
) -> None:
    """A manager, and a finance director, within their limits; it is known who they are."""
    found = await decisions.verify_statement(
        check(signer.decision(proposal(), verdict, by=by).token)
    )
    assert found.refusal is None
    assert found.person is not None
    assert found.person.address == by


async def test_who_is_known_however_the_address_is_spelled(
    decisions: Decisions, signer: Signer
) -> None:
    """R12: capitals and spaces make no other person, in either direction."""
    spelled: dict[str, Any] = {"iss": " Maria.Silva@Northwind.Example"}
    token = signer.decision(proposal(), **spelled).token
    assert await refusal(decisions, token) is None
    asked_herself = await refusal(decisions, token, requester="maria.silva+x@northwind.example")
    assert asked_herself is Refusal.IS_REQUESTER


NO_RIGHT: list[Any] = [
    pytest.param(
        {"by": TOM}, {"proposal": proposal(minor=50001)}, Refusal.OVER_LIMIT, id="above the limit"
    ),
    pytest.param(
        {"by": TOM},
        {"proposal": proposal(taken_before=usd(10000))},
        Refusal.OVER_LIMIT,
        id="in slices",
    ),
    pytest.param({"by": SAM}, {"requester": GRACE}, Refusal.NO_RIGHT, id="support"),
    pytest.param({"by": VICTOR}, {}, Refusal.KEY_NOT_VALID, id="left"),
    pytest.param({"by": MARIA}, {"requester": MARIA}, Refusal.IS_REQUESTER, id="requester"),
    pytest.param({"by": MARIA}, {"customer": MARIA}, Refusal.IS_CUSTOMER, id="customer"),
    pytest.param({"iss": "nobody@northwind.example"}, {}, Refusal.UNKNOWN_PERSON, id="nobody"),
    pytest.param({"iss": "../policy"}, {}, Refusal.UNKNOWN_PERSON, id="a path"),
    pytest.param({"iss": "a@b/../policy"}, {}, Refusal.UNKNOWN_PERSON, id="a path with @"),
    pytest.param(
        {"by": MARIA},
        {"proposal": proposal(proposal_id="f" * 32)},
        Refusal.OTHER_PROPOSAL,
        id="other proposal",
    ),
]


@pytest.mark.parametrize(("signed", "asked", "expected"), NO_RIGHT)
async def test_a_decision_of_one_who_may_not_is_refused(
    decisions: Decisions,
    signer: Signer,
    signed: dict[str, Any],
    asked: dict[str, Any],
    expected: Refusal,
) -> None:
    """A good signature is no right."""
    assert (
        await refusal(decisions, signer.decision(proposal(), **signed).token, **asked) is expected
    )


async def test_saying_no_takes_no_limit(decisions: Decisions, signer: Signer) -> None:
    """Tom may not approve $1,000.00, and may stop it."""
    large = proposal(minor=100_000)
    token = signer.decision(large, "reject", by=TOM).token
    assert await refusal(decisions, token, proposal=large) is None


FORGED: list[Any] = [
    pytest.param({"key_of": TOM}, Refusal.BAD_SIGNATURE, id="another's key"),
    pytest.param({"headers": {"kid": "tom.becker.1"}}, Refusal.UNKNOWN_KEY, id="another's kid"),
    pytest.param({"headers": {"kid": "../keys/maria"}}, Refusal.UNKNOWN_KEY, id="kid as a path"),
    pytest.param({"headers": {"typ": "JWT"}}, Refusal.MALFORMED, id="no type"),
    pytest.param(
        {"headers": {"typ": StatementKind.WITHDRAWAL.value}}, Refusal.MALFORMED, id="other type"
    ),
    pytest.param({"headers": {"crit": ["x"], "x": 1}}, Refusal.BAD_SIGNATURE, id="unknown crit"),
    pytest.param({"comment": "x" * 501}, Refusal.MALFORMED, id="too long a comment"),
]


@pytest.mark.parametrize(("how", "expected"), FORGED)
async def test_a_forged_statement_is_refused(
    decisions: Decisions, signer: Signer, how: dict[str, Any], expected: Refusal
) -> None:
    """Another key, another kid, another type: the signer's own key and kind, or nothing."""
    assert await refusal(decisions, signer.decision(proposal(), **how).token) is expected


def encoded(part: dict[str, Any]) -> str:
    """A part of a compact JWS."""
    return base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")


async def test_a_statement_without_a_signature_is_refused(
    decisions: Decisions, signer: Signer
) -> None:
    """`alg: none`, an algorithm keyed by the public key, a changed word, garbage, 1 MB."""
    good = signer.decision(proposal()).token
    header, claims, signature = good.split(".")
    plain = {"typ": StatementKind.DECISION.value, "kid": "maria.silva.1"}
    changed = jwt.utils.base64url_decode(claims).replace(b"as agreed", b"as I said")
    other = base64.urlsafe_b64encode(changed).decode().rstrip("=")
    assert await refusal(decisions, good) is None
    for token, expected in (
        (f"{encoded({**plain, 'alg': 'none'})}.{claims}.", Refusal.MALFORMED),
        (f"{encoded({**plain, 'alg': 'HS256'})}.{claims}.{signature}", Refusal.MALFORMED),
        (f"{header}.{other}.{signature}", Refusal.BAD_SIGNATURE),
        (f"{header}.{claims}.", Refusal.BAD_SIGNATURE),
        (f"{header}.{claims}.!!!", Refusal.BAD_SIGNATURE),
        ("", Refusal.MALFORMED),
        ("a.b.c", Refusal.MALFORMED),
        ("a" * 1_000_000, Refusal.MALFORMED),
    ):
        assert await refusal(decisions, token) is expected


async def test_a_stranger_with_a_key_of_their_own_is_refused(
    decisions: Decisions, signer: Signer
) -> None:
    """A key that the statement brings along is never looked at."""
    stranger = Ed25519PrivateKey.generate()
    claims = jwt.decode(
        signer.decision(proposal()).token, options={"verify_signature": False}, algorithms=["EdDSA"]
    )
    public = base64.urlsafe_b64encode(stranger.public_key().public_bytes_raw()).decode()
    headers = {
        "typ": StatementKind.DECISION.value,
        "kid": "maria.silva.1",
        "jwk": {"kty": "OKP", "crv": "Ed25519", "x": public.rstrip("=")},
    }
    token = jwt.encode(claims, stranger, algorithm="EdDSA", headers=headers)
    assert await refusal(decisions, token) is Refusal.BAD_SIGNATURE


DAY = 24 * 3600.0


def instant(seconds_from_now: float) -> str:
    """An instant as the directory writes it."""
    return datetime.fromtimestamp(time.time() + seconds_from_now, UTC).isoformat()


async def test_a_key_counts_within_its_time(
    decisions: Decisions, signer: Signer, http: httpx.AsyncClient
) -> None:
    """R13: valid when it signed *and* when the message came in: no date of one's choice helps."""
    [key] = await keys_of(http, MARIA)
    in_time = signer.decision(proposal(), at=time.time() - 2 * DAY).token
    now = signer.decision(proposal()).token
    await change(http, MARIA, keys=[key | {"valid_from": instant(-3 * DAY)}])
    assert await refusal(decisions, in_time) is None
    await change(http, MARIA, keys=[key | {"valid_from": instant(-DAY)}])
    assert await refusal(decisions, in_time) is Refusal.KEY_NOT_VALID
    ended = {"valid_from": instant(-3 * DAY), "valid_until": instant(-DAY)}
    await change(http, MARIA, keys=[key | ended])
    assert await refusal(decisions, in_time) is Refusal.KEY_NOT_VALID
    assert await refusal(decisions, now) is Refusal.KEY_NOT_VALID


@pytest.mark.parametrize(
    "part",
    [{"signs_for": [TOM]}, {"signs_for": []}, {"kid": "maria.silva.2"}],
    ids=str,
)
async def test_a_key_that_is_not_for_the_signer_is_unknown(
    decisions: Decisions, signer: Signer, http: httpx.AsyncClient, part: dict[str, Any]
) -> None:
    """A key signs for whom the directory says, and under its own name."""
    [key] = await keys_of(http, MARIA)
    await change(http, MARIA, keys=[key | part])
    assert await refusal(decisions, signer.decision(proposal()).token) is Refusal.UNKNOWN_KEY


@pytest.mark.parametrize(
    "part", [{"algorithm": "RSA"}, {"public": "AAAA"}, {"public": "é"}], ids=str
)
def test_what_is_no_key_of_ours_is_unknown(signer: Signer, part: dict[str, str]) -> None:
    """Another algorithm, or bytes that are no Ed25519 key, sign nothing."""
    key = {
        "kid": "maria.silva.1",
        "algorithm": "Ed25519",
        "public": "A" * 43,
        "valid_from": instant(-DAY),
        "signs_for": [MARIA],
    }
    person = Person.model_validate({"address": MARIA, "name": "Maria", "keys": [key | part]})
    token = signer.decision(proposal()).token
    why = refuse_signature(token, StatementKind.DECISION, person, received_at=None)
    assert why is Refusal.UNKNOWN_KEY


async def test_a_person_who_left_decides_nothing(
    decisions: Decisions, signer: Signer, http: httpx.AsyncClient
) -> None:
    """The directory as it is now decides, with the key still valid."""
    await change(http, MARIA, active=False)
    assert await refusal(decisions, signer.decision(proposal()).token) is Refusal.NOT_ACTIVE


async def test_a_withdrawal_takes_no_more_right_than_a_request(
    decisions: Decisions, signer: Signer, http: httpx.AsyncClient
) -> None:
    """Any active member of staff may stop a payment, and nobody who has left."""
    request = RefundRequest(
        environment="local",
        order_id="8890",
        request_id="req-1",
        message="Hello",
        requester=SAM,
        statement="x",
    )
    how = {"kind": StatementKind.WITHDRAWAL, "proposal": None}
    for by in (SAM, TOM):
        assert await refusal(decisions, signer.withdrawal(request, by=by).token, **how) is None
    await change(http, SAM, active=False)
    token = signer.withdrawal(request).token
    assert await refusal(decisions, token, **how) is Refusal.NOT_ACTIVE


async def test_a_directory_that_is_down_means_wait(
    decisions: Decisions, signer: Signer, http: httpx.AsyncClient
) -> None:
    """R13: never "allowed" and never "refused"."""
    await set_faults(http, {"system": "staff", "operation": "staff.get", "what": "drop_before"})
    with pytest.raises(Unreachable):
        await refusal(decisions, signer.decision(proposal()).token)
