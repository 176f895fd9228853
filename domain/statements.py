"""What people sign: a request, a decision, a withdrawal, as claims of a compact JWS.

This module reads claims without checking the signature, which is what deterministic code can do;
`activities.decisions` checks it. Nothing read here counts until that check has passed.
"""

import base64
import binascii
import hashlib
import json
import re
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import StringConstraints, ValidationError

from domain.instants import NumericDate
from domain.models import Frozen, Identifier
from domain.request import RefundRequest

ALGORITHM = "EdDSA"
# A signed decision is about 700 bytes. Anything much larger is no decision of ours.
TOKEN_LIMIT = 4_096
_BASE64URL = re.compile(r"[A-Za-z0-9_-]+")

Person = Annotated[str, StringConstraints(min_length=3, max_length=254)]
Comment = Annotated[str, StringConstraints(max_length=500)]


class Verdict(StrEnum):
    APPROVE = "approve"
    REJECT = "reject"


class StatementKind(StrEnum):
    """The `typ` of the JWS header: a statement of one kind can never pass for another."""

    REQUEST = "northwind-request+jwt"
    DECISION = "northwind-decision+jwt"
    WITHDRAWAL = "northwind-withdrawal+jwt"


class SignedStatement(Frozen):
    """The one argument of both signals."""

    token: Annotated[str, StringConstraints(min_length=1, max_length=TOKEN_LIMIT)]


class Header(Frozen):
    alg: str
    typ: str
    kid: Annotated[str, StringConstraints(min_length=1, max_length=128)]


class Claims(Frozen):
    """What every statement says: who, when, in which environment, about which request."""

    iss: Person
    """The signer's address."""
    iat: NumericDate
    """When it was signed, in whole seconds (RFC 7519, NumericDate)."""
    jti: Identifier
    """The statement's own id, by which its sender finds it in the trail."""
    env: Identifier
    sub: Annotated[str, StringConstraints(max_length=128)]
    """The workflow id."""


class RequestClaims(Claims):
    kind: Literal["request"] = "request"
    digest: Annotated[str, StringConstraints(max_length=64)]
    """`request_digest` of what is asked for; `jti` is the request id."""


class DecisionClaims(Claims):
    kind: Literal["decision"] = "decision"
    proposal: Annotated[str, StringConstraints(max_length=64)]
    verdict: Verdict
    comment: Comment = ""


class WithdrawalClaims(Claims):
    kind: Literal["withdrawal"] = "withdrawal"
    request: Identifier
    comment: Comment = ""


CLAIMS_OF: dict[
    StatementKind, type[RequestClaims] | type[DecisionClaims] | type[WithdrawalClaims]
] = {
    StatementKind.REQUEST: RequestClaims,
    StatementKind.DECISION: DecisionClaims,
    StatementKind.WITHDRAWAL: WithdrawalClaims,
}


class StatementError(ValueError):
    """The token is no statement of the wanted kind; the message is one line."""


def request_digest(request: RefundRequest) -> str:
    """SHA-256 over what a requester signs, so that none of it can be exchanged afterwards."""
    parts = [request.order_id, request.request_id, request.amount, request.message]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


AnyClaims = RequestClaims | DecisionClaims | WithdrawalClaims


def read_claims(token: str, kind: StatementKind) -> AnyClaims:
    """The claims of a token, unchecked.

    Raises:
        StatementError: no compact JWS, another algorithm or kind, or claims of the wrong shape.
    """
    parts = token.split(".")
    if len(token) > TOKEN_LIMIT or len(parts) != 3:
        raise StatementError("not a signed statement")
    try:
        header = Header.model_validate_json(_decode(parts[0]))
        if header.alg != ALGORITHM or header.typ != kind:
            raise StatementError(f"not a signed statement of type {kind.value}")
        return CLAIMS_OF[kind].model_validate_json(_decode(parts[1]))
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors()[0]["loc"]) or "its JSON"
        raise StatementError(f"the signed statement is wrong in {where}") from None
    except (binascii.Error, ValueError) as error:
        if isinstance(error, StatementError):
            raise
        raise StatementError("not a signed statement") from None


def _decode(part: str) -> bytes:
    # The decoder alone skips what is not base64, so that many texts would carry the same claims.
    if _BASE64URL.fullmatch(part) is None:
        raise StatementError("not a signed statement")
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
