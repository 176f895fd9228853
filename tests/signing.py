"""Sign as a member of staff would, or as nobody should: every claim and header can be changed."""

import json
import time
import uuid
from pathlib import Path
from typing import Any

import jwt

from domain.names import workflow_id
from domain.request import Proposal, RefundRequest
from domain.statements import ALGORITHM, SignedStatement, StatementKind, request_digest

SAM = "sam.okafor@northwind.example"
MARIA = "maria.silva@northwind.example"
TOM = "tom.becker@northwind.example"
GRACE = "grace.lin@northwind.example"
VICTOR = "victor.hale@northwind.example"


class Signer:
    """Holds everybody's private keys, which only a test may."""

    def __init__(self, keys: Path) -> None:
        """Take the folder in which the company wrote the keys."""
        self.keys = keys

    def sign(
        self,
        kind: StatementKind,
        who: str,
        claims: dict[str, Any],
        headers: dict[str, Any] | None = None,
        key_of: str | None = None,
    ) -> SignedStatement:
        """A statement by `who`; `headers` and `key_of` make it a forgery."""
        pem = (self.keys / f"{key_of or who}.pem").read_bytes()
        given = {"typ": kind.value, "kid": f"{who.partition('@')[0]}.1", **(headers or {})}
        return SignedStatement(token=jwt.encode(claims, pem, algorithm=ALGORITHM, headers=given))

    def request(self, request: RefundRequest, **changes: Any) -> str:
        """The requester's statement over a request."""
        claims = {
            "kind": "request",
            "iss": request.requester,
            "iat": int(time.time()),
            "jti": request.request_id,
            "env": request.environment,
            "sub": workflow_id(request.order_id),
            "digest": request_digest(request),
            **changes,
        }
        return self.sign(StatementKind.REQUEST, request.requester, claims).token

    def decision(
        self,
        on: Proposal,
        verdict: str = "approve",
        *,
        by: str = MARIA,
        at: float | None = None,
        headers: dict[str, Any] | None = None,
        key_of: str | None = None,
        **changes: Any,
    ) -> SignedStatement:
        """A decision on a proposal."""
        claims = {
            "kind": "decision",
            "iss": by,
            "iat": int(time.time() if at is None else at),
            "jti": uuid.uuid4().hex,
            "env": "local",
            "sub": workflow_id(on.order_id),
            "proposal": on.proposal_id,
            "verdict": verdict,
            "comment": "as agreed",
            **changes,
        }
        return self.sign(StatementKind.DECISION, by, claims, headers, key_of)

    def withdrawal(
        self, of: RefundRequest, *, by: str = SAM, at: float | None = None, **changes: Any
    ) -> SignedStatement:
        """A withdrawal of a request."""
        claims = {
            "kind": "withdrawal",
            "iss": by,
            "iat": int(time.time() if at is None else at),
            "jti": uuid.uuid4().hex,
            "env": of.environment,
            "sub": workflow_id(of.order_id),
            "request": of.request_id,
            "comment": "the customer called",
            **changes,
        }
        return self.sign(StatementKind.WITHDRAWAL, by, claims)


def statement_id(statement: SignedStatement) -> str:
    """The id by which a statement is found in the trail."""
    part = statement.token.split(".")[1]
    claims = json.loads(jwt.utils.base64url_decode(part))
    return str(claims["jti"])
