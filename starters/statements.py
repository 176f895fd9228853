"""Sign what a person says, with the private key that lies in the key folder.

A key is `<address>.pem` (PKCS8, Ed25519). Its id in the staff directory stands in `<address>.kid`
beside it; where that file is missing, it is the first key of the person: `<local part>.1`.
"""

import re
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from domain.names import workflow_id
from domain.request import Proposal, RefundRequest
from domain.statements import (
    ALGORITHM,
    CLAIMS_OF,
    TOKEN_LIMIT,
    SignedStatement,
    StatementKind,
    Verdict,
    request_digest,
)
from starters.errors import CommandError, Exit

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

# An address becomes the name of a file: nothing in it may lead out of the key folder.
_ADDRESS = re.compile(r"[a-z0-9][a-z0-9._+-]{0,63}@[a-z0-9][a-z0-9.-]{0,188}")


class Signer:
    """One person with their private key."""

    def __init__(self, keys_dir: Path, address: str) -> None:
        """Read the person's key.

        Raises:
            CommandError: no mail address, no key of theirs, or a file that is no key.
        """
        self.address = plain_address(address)
        self._key = read_key(_key_file(keys_dir, self.address))
        self._kid = _read_kid(keys_dir, self.address)

    def request(self, request: RefundRequest) -> str:
        """The signed statement over a request; its id is the request id."""
        claims = {"kind": "request", "digest": request_digest(request), "jti": request.request_id}
        return self._sign(StatementKind.REQUEST, request.environment, request.order_id, claims)

    def decision(
        self, environment: str, proposal: Proposal, verdict: Verdict, comment: str
    ) -> SignedStatement:
        """A decision on exactly this proposal."""
        claims = {
            "kind": "decision",
            "proposal": proposal.proposal_id,
            "verdict": verdict.value,
            "comment": comment,
        }
        token = self._sign(StatementKind.DECISION, environment, proposal.order_id, claims)
        return SignedStatement(token=token)

    def withdrawal(
        self, environment: str, order_id: str, request_id: str, comment: str
    ) -> SignedStatement:
        """A withdrawal of exactly this request."""
        claims = {"kind": "withdrawal", "request": request_id, "comment": comment}
        token = self._sign(StatementKind.WITHDRAWAL, environment, order_id, claims)
        return SignedStatement(token=token)

    def _sign(
        self, kind: StatementKind, environment: str, order_id: str, more: dict[str, Any]
    ) -> str:
        import jwt

        claims = {
            "iss": self.address,
            "iat": int(time.time()),
            "jti": uuid.uuid4().hex,
            "env": environment,
            "sub": workflow_id(order_id),
            **more,
        }
        try:
            CLAIMS_OF[kind].model_validate(claims)
        except ValidationError as error:
            problem = error.errors()[0]
            raise CommandError(f"{problem['loc'][-1]}: {problem['msg']}", Exit.USAGE) from None
        headers = {"typ": kind.value, "kid": self._kid}
        token = jwt.encode(claims, self._key, algorithm=ALGORITHM, headers=headers)
        if len(token) > TOKEN_LIMIT:
            raise CommandError(
                f"the comment is too long: {len(token)} bytes once signed", Exit.USAGE
            )
        return token


def plain_address(address: str) -> str:
    """The address as the staff directory writes it.

    Raises:
        CommandError: it is no mail address, or could be taken for a path.
    """
    plain = address.strip().lower()
    if _ADDRESS.fullmatch(plain) is None or ".." in plain:
        raise CommandError(f"{address[:60]!r} is no mail address of a member of staff", Exit.USAGE)
    return plain


def people_with_keys(keys_dir: Path) -> list[str]:
    """Whose private keys lie in the folder."""
    return sorted(file.stem for file in keys_dir.glob("*@*.pem"))


def read_key(file: Path) -> "Ed25519PrivateKey":
    """A private key.

    Raises:
        CommandError: there is no such file, it cannot be read, or it is no such key.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(file.read_bytes(), password=None)
    except FileNotFoundError:
        raise CommandError(
            f"there is no key {file}; {_what_is_in(file.parent)}", Exit.USAGE
        ) from None
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise CommandError(
            f"{file} is no private key in PEM without a password", Exit.USAGE
        ) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise CommandError(f"{file} is no Ed25519 key", Exit.USAGE)
    return key


def _what_is_in(keys_dir: Path) -> str:
    people = people_with_keys(keys_dir)
    if people:
        return f"{keys_dir} has keys of: {', '.join(people)}"
    if keys_dir.exists():
        return f"{keys_dir} holds no keys"
    return (
        f"there is no {keys_dir.absolute()}: go to the folder where `refund up` runs, or set "
        "NORTHWIND_DATA_DIR"
    )


def _key_file(keys_dir: Path, address: str) -> Path:
    return keys_dir / f"{address}.pem"


def _read_kid(keys_dir: Path, address: str) -> str:
    try:
        return (keys_dir / f"{address}.kid").read_text().strip()
    except FileNotFoundError:
        return f"{address.partition('@')[0]}.1"
