# ruff: noqa: RUF001 - letters and digits that look alike are the point here
"""Reading what people signed: whatever comes, it is a statement or one clear refusal."""

import base64
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from domain.request import RefundRequest
from domain.statements import (
    TOKEN_LIMIT,
    DecisionClaims,
    RequestClaims,
    SignedStatement,
    StatementError,
    StatementKind,
    Verdict,
    WithdrawalClaims,
    read_claims,
    request_digest,
)
from tests.domain.build import MANAGER, request

SIGNED_AT = 1_796_000_000
HEADER = {"alg": "EdDSA", "typ": StatementKind.DECISION.value, "kid": "maria.silva.1"}
DECISION = {
    "iss": MANAGER,
    "iat": SIGNED_AT,
    "jti": "d-1",
    "env": "local",
    "sub": "refund-order-8890",
    "proposal": "0" * 32,
    "verdict": "approve",
}


def encode(part: object) -> str:
    """A part of a token: bytes as they are, anything else as JSON."""
    raw = part if isinstance(part, bytes) else json.dumps(part).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def token(claims: object = DECISION, header: object = HEADER, signature: str = "c2ln") -> str:
    """A token of these parts. Its signature is not looked at here."""
    return f"{encode(header)}.{encode(claims)}.{signature}"


def read(text: str) -> DecisionClaims:
    """The claims of a decision."""
    claims = read_claims(text, StatementKind.DECISION)
    assert isinstance(claims, DecisionClaims)
    return claims


def test_a_decision_is_read() -> None:
    """Who, when, about what, and which way."""
    claims = read(token({**DECISION, "comment": "as agreed", "field_of_next_year": [1]}))
    assert claims.iss == MANAGER
    assert claims.iat == datetime.fromtimestamp(SIGNED_AT, UTC)
    assert (claims.verdict, claims.comment) == (Verdict.APPROVE, "as agreed")


@pytest.mark.parametrize(
    ("kind", "own", "expected"),
    [
        (StatementKind.REQUEST, {"digest": "d"}, RequestClaims),
        (StatementKind.DECISION, {}, DecisionClaims),
        (StatementKind.WITHDRAWAL, {"request": "r-1"}, WithdrawalClaims),
    ],
)
def test_a_statement_of_one_kind_never_passes_for_another(
    kind: StatementKind, own: dict[str, str], expected: type
) -> None:
    """Even one that has the claims of all kinds counts as what its header says."""
    claims = {**DECISION, "digest": "d", "request": "r-1", **own}
    text = token(claims, {**HEADER, "typ": kind})
    for other in StatementKind:
        if other is kind:
            assert type(read_claims(text, other)) is expected
        else:
            with pytest.raises(StatementError, match=other.value.replace("+", r"\+")):
                read_claims(text, other)


@pytest.mark.parametrize(
    "header",
    [
        {**HEADER, "alg": "none"},
        {**HEADER, "alg": "None"},
        {**HEADER, "alg": "HS256"},
        {**HEADER, "alg": "eddsa"},
        {**HEADER, "typ": "JWT"},
        {**HEADER, "typ": None},
        {**HEADER, "kid": ""},
        {**HEADER, "kid": "k" * 129},
        {**HEADER, "kid": ["k"]},
        {"alg": "EdDSA", "typ": HEADER["typ"]},
        {},
        [],
        "header",
        None,
    ],
)
def test_another_algorithm_or_type_is_refused(header: object) -> None:
    """The header says what is accepted, and nothing is inferred from it."""
    with pytest.raises(StatementError):
        read(token(header=header))


IMPOSSIBLE_INSTANTS: list[object] = [
    *(None, True, False, [], {}, "", "soon", "2026-11-29T09:00:00", 1.5, float(SIGNED_AT)),
    *(float("nan"), float("inf"), 10**12, SIGNED_AT * 1_000, 10**18, 10**400, -(10**12)),
    *("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "10000-01-01T00:00:00Z"),
]


@pytest.mark.parametrize("iat", IMPOSSIBLE_INSTANTS, ids=lambda iat: f"{iat!r:.30}")
def test_a_time_that_is_none_is_refused(iat: object) -> None:
    """Fractions, milliseconds, times without zone or outside the calendar: one line says where."""
    with pytest.raises(StatementError, match="wrong in iat"):
        read(token({**DECISION, "iat": iat}))


@pytest.mark.parametrize(
    ("iat", "instant"),
    [
        (0, datetime(1970, 1, 1, tzinfo=UTC)),
        (-1, datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)),
        (20_000_000_001, datetime(2603, 10, 11, 11, 33, 21, tzinfo=UTC)),
        (253_402_300_799, datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)),
        ("2026-11-29T11:00:00+02:00", datetime(2026, 11, 29, 9, tzinfo=UTC)),
    ],
)
def test_a_time_is_whole_seconds_in_utc(iat: object, instant: datetime) -> None:
    """Numbers are seconds however large they are; text has to name its offset."""
    read_at = read(token({**DECISION, "iat": iat})).iat
    assert read_at == instant
    assert read_at.utcoffset() == instant.utcoffset()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *((field, None) for field in DECISION),
        ("verdict", "APPROVE"),
        ("verdict", "approve "),
        ("verdict", True),
        ("jti", "d 1"),
        ("jti", "d-1\n"),
        ("jti", ".."),
        ("env", ""),
        ("sub", "s" * 129),
        ("proposal", 1),
        ("comment", "c" * 501),
        ("iss", "i" * 255),
        ("kind", "withdrawal"),
    ],
)
def test_a_claim_of_the_wrong_shape_is_named(field: str, value: object) -> None:
    """The sender learns which claim is wrong, and sees none of its content again."""
    with pytest.raises(StatementError, match=f"wrong in {field}$"):
        read(token({**DECISION, field: value}))


@pytest.mark.parametrize("field", DECISION)
def test_no_claim_may_be_missing(field: str) -> None:
    """Nothing is filled in for the signer."""
    with pytest.raises(StatementError, match=f"wrong in {field}$"):
        read(token({key: value for key, value in DECISION.items() if key != field}))


GARBAGE = [
    *("", ".", "..", "...", "a.b", "a.b.c", "a.b.c.d", "null", "[]", "\ud800.\ud800.\ud800"),
    *(
        "٤.٢.٠",
        f"{token()}.",
        f".{token()}",
        token(b""),
        token(b"\xff\xfe"),
        token(b"{"),
        token(None),
    ),
    *(token([DECISION]), token(b'{"iat":NaN}'), token(b'{"iat":1e999}'), token(b'{"a":"\\ud800"}')),
    *(token(b"[" * 2_900), token(b'{"a":' * 500), token(b'{"iat":' + b"[" * 1_400 + b"]" * 1_400)),
    *(
        token().replace(".", "=.", 1),
        token().replace(".", " .", 1),
        f"\n{token()}",
        f"{token()[:9]}\n.",
    ),
]


@pytest.mark.parametrize("text", GARBAGE, ids=range(len(GARBAGE)))
def test_garbage_is_refused_by_one_line(text: str) -> None:
    """No nesting, encoding or padding raises anything but the error that callers catch."""
    for kind in StatementKind:
        with pytest.raises(StatementError) as refused:
            read_claims(text, kind)
        assert len(str(refused.value)) < 100
        assert "\n" not in str(refused.value)


def test_base64_is_read_in_one_way_only() -> None:
    """Characters that decoders skip cannot hide in a statement."""
    head, claims, signature = token().split(".")
    for hidden in ("!", "=", "+", "/", "\n", "é"):
        for text in (
            f"{head}{hidden}.{claims}.{signature}",
            f"{head}.{hidden}{claims}.{signature}",
        ):
            with pytest.raises(StatementError):
                read(text)


def test_a_token_has_a_greatest_length() -> None:
    """4,096 characters are read, and 4,097 are not."""
    room = TOKEN_LIMIT - len(token(signature=""))
    assert read(token(signature="s" * room)).jti == "d-1"
    with pytest.raises(StatementError):
        read(token(signature="s" * (room + 1)))
    with pytest.raises(ValidationError):
        SignedStatement(token="s" * (TOKEN_LIMIT + 1))


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(
    text=st.text()
    | st.text(".abc=_-", max_size=40)
    | st.builds(token, st.binary() | JSON_VALUES, st.sampled_from([HEADER, {}, b"\xff", None]))
    | st.builds(
        lambda field, value: token({**DECISION, field: value}),
        st.sampled_from(sorted(DECISION)),
        JSON_VALUES,
    ),
    kind=st.sampled_from(StatementKind),
)
def test_any_text_is_a_statement_or_a_statement_error(text: str, kind: StatementKind) -> None:
    """Workflow code that reads a stranger's bytes cannot fail its task (sdk-python#1322)."""
    try:
        claims = read_claims(text, kind)
    except StatementError:
        return
    assert claims.iat.utcoffset() is not None


SIGNED_FIELDS = ("order_id", "request_id", "amount", "message")


def asked_for(one: RefundRequest) -> tuple[str | None, ...]:
    """What a requester signs."""
    return (one.order_id, one.request_id, one.amount, one.message)


TINY = st.text("a1", min_size=1, max_size=3)
REQUESTS = st.builds(
    lambda order_id, request_id, amount, message: request(
        order_id=order_id, request_id=request_id, amount=amount, message=message
    ),
    order_id=TINY,
    request_id=TINY,
    amount=st.none() | st.text('a1",', max_size=3),
    message=st.text('a1",[]', min_size=1, max_size=4),
)


@given(one=REQUESTS, other=REQUESTS)
def test_two_requests_never_share_a_digest(one: RefundRequest, other: RefundRequest) -> None:
    """Moving characters from one field to the next makes another statement."""
    same = asked_for(one) == asked_for(other)
    assert (request_digest(one) == request_digest(other)) == same


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"order_id": "88", "request_id": "90r"}, {"order_id": "8890", "request_id": "r"}),
        ({"amount": None}, {"amount": ""}),
        ({"amount": None}, {"amount": "null"}),
        ({"amount": "1"}, {"amount": "1.00"}),
        ({"amount": "4", "message": "2 please"}, {"amount": "42", "message": " please"}),
        ({"message": "é"}, {"message": "e\u0301"}),
        ({"message": "all"}, {"message": "all "}),
    ],
)
def test_what_is_not_the_same_is_signed_apart(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Above all, no amount and an empty one differ: the first asks for all that is left."""
    assert request_digest(request(**one)) != request_digest(request(**other))


def test_the_digest_of_a_request_is_spelled_as_documented() -> None:
    """Statements that were signed before a change must still hold after it."""
    assert request_digest(request()) == (
        "589dfcfeab96e8a021b7d656eb25bd94098dc05a0a65561b260e79f5db69069e"
    )
