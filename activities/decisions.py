"""Signed statements, checked against the staff directory: signature, key, person, right.

The key is looked up only among those that the directory lists for the signer whom the statement
names. Nothing in the statement, such as its `kid`, is ever used as a path or an address.
"""

import base64
import binascii
from datetime import datetime

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from temporalio import activity

from activities.interfaces import StatementActivities, StatementCheck, StatementVerdict
from activities.staff import People, StaffDirectory, directory_address
from activities.watch import NoWatch, Watch
from domain.approvals import Standing, is_director_for
from domain.models import Contact, Person, PublicKey
from domain.moments import Moment
from domain.names import workflow_id
from domain.people import may_decide, may_request
from domain.request import Proposal, RefundRequest
from domain.statements import (
    ALGORITHM,
    Claims,
    DecisionClaims,
    RequestClaims,
    StatementError,
    StatementKind,
    Verdict,
    read_claims,
    request_digest,
)
from domain.trail import Refusal

# What the staff directory calls the only kind of key that statements are signed with.
KEY_ALGORITHM = "Ed25519"


class Decisions(StatementActivities):
    """Verifies decisions and withdrawals with the staff directory as it is now."""

    def __init__(self, staff: StaffDirectory, watch: Watch | None = None) -> None:
        """Look people up in this directory; the watch is told of each statement."""
        self._staff = staff
        self._watch = watch or NoWatch()

    @activity.defn
    async def verify_statement(self, check: StatementCheck) -> StatementVerdict:
        """Check signature, key, person and right against the staff directory.

        Raises:
            OutsideError: the directory cannot be read, which means wait, never allowed.
        """
        try:
            claims = read_claims(check.token, check.kind)
        except StatementError:
            return StatementVerdict(refusal=Refusal.MALFORMED)
        effect = check.kind.name.lower()
        await self._watch.at(effect, Moment.BEFORE)
        person = await self._staff.find_person(claims.iss)
        await self._watch.at(effect, Moment.DONE)
        if person is None:
            return StatementVerdict(refusal=Refusal.UNKNOWN_PERSON)
        refusal = refuse_signature(check.token, check.kind, person, check.received_at)
        if refusal is None:
            refusal = _refuse_right(check, claims, person)
        return StatementVerdict(
            refusal=refusal,
            person=contact(person),
            director=check.proposal is not None and is_director_for(person, check.proposal),
            checked=_checked(check, claims, person) if refusal is None else "",
        )


def contact(person: Person) -> Contact:
    """Whom to write to when this person is meant."""
    return Contact(name=person.name, address=person.address, time_zone=person.time_zone)


def refuse_signature(
    token: str, kind: StatementKind, person: Person, received_at: datetime | None
) -> Refusal | None:
    """Why this token is not signed by this person; None where it is.

    Args:
        token: A statement whose claims could be read and name this person.
        kind: What kind of statement it must be.
        person: The directory's words about the signer.
        received_at: When a newly arriving statement came in: its key must still be valid then, else
            whoever holds a key that was withdrawn could sign with an earlier date. None for a
            statement that was taken up before; its key must have been valid when it was signed.
    """
    claims = read_claims(token, kind)
    try:
        kid = jwt.get_unverified_header(token).get("kid")
        key = next((key for key in person.keys if key.kid == kid), None)
        public = _public_key(key) if key is not None else None
        if key is None or public is None or not _signs_for(key, person):
            return Refusal.UNKNOWN_KEY
        jwt.PyJWS().decode(token, public, algorithms=[ALGORITHM])
    except jwt.InvalidTokenError:
        return Refusal.BAD_SIGNATURE
    if not key.valid_at(claims.iat) or (received_at is not None and not key.valid_at(received_at)):
        return Refusal.KEY_NOT_VALID
    return None


def refuse_request(
    request: RefundRequest, requester: Person | None, received_at: datetime | None
) -> Refusal | None:
    """Why a request is not what its requester signed, or may not ask; None where all is well.

    Args:
        request: What the run was started with.
        requester: The directory's words about `request.requester`.
        received_at: See `refuse_signature`.
    """
    try:
        claims = read_claims(request.statement, StatementKind.REQUEST)
    except StatementError:
        return Refusal.MALFORMED
    if requester is None:
        return Refusal.UNKNOWN_PERSON
    if directory_address(claims.iss) != directory_address(requester.address):
        return Refusal.OTHER_REQUEST
    refusal = refuse_signature(request.statement, StatementKind.REQUEST, requester, received_at)
    return refusal or _refuse_place(claims, request) or may_request(requester)


def standing_of(
    token: str, proposal: Proposal, people: People, requester: str, customer: str
) -> Standing:
    """What an approval that counted before is worth now.

    The signature is held to the time of signing, the right to this moment
    (wso2/product-is#25308).
    """
    try:
        claims = read_claims(token, StatementKind.DECISION)
    except StatementError:
        return Standing(refusal=Refusal.MALFORMED)
    person = people.find(claims.iss)
    if person is None:
        return Standing(refusal=Refusal.UNKNOWN_PERSON)
    if not isinstance(claims, DecisionClaims) or claims.proposal != proposal.proposal_id:
        return Standing(refusal=Refusal.OTHER_PROPOSAL)
    if claims.verdict is not Verdict.APPROVE:
        return Standing(refusal=Refusal.NO_RIGHT)
    refusal = refuse_signature(token, StatementKind.DECISION, person, received_at=None)
    return Standing(
        refusal=refusal or may_decide(person, claims.verdict, proposal, requester, customer),
        director=is_director_for(person, proposal),
    )


def _refuse_place(claims: Claims, request: RefundRequest) -> Refusal | None:
    if claims.env != request.environment:
        return Refusal.OTHER_ENVIRONMENT
    if claims.sub != workflow_id(request.order_id):
        return Refusal.OTHER_RUN
    signed = isinstance(claims, RequestClaims) and claims.digest == request_digest(request)
    if not signed or claims.jti != request.request_id:
        return Refusal.OTHER_REQUEST
    return None


def _refuse_right(check: StatementCheck, claims: Claims, person: Person) -> Refusal | None:
    if not isinstance(claims, DecisionClaims):
        # Stopping a payment takes no more right than asking for one.
        return may_request(person)
    if check.proposal is None or claims.proposal != check.proposal.proposal_id:
        return Refusal.OTHER_PROPOSAL
    return may_decide(person, claims.verdict, check.proposal, check.requester, check.customer)


def _checked(check: StatementCheck, claims: Claims, person: Person) -> str:
    """What was looked at, in words for the trail."""
    kid = jwt.get_unverified_header(check.token).get("kid")
    parts = [f"signed {claims.iat:%Y-%m-%d %H:%M:%S} UTC", f"key {kid}", *person.roles]
    if check.proposal is not None:
        currency = check.proposal.amount.currency
        parts += [f"up to {limit}" for limit in person.limits if limit.currency == currency]
    return ", ".join(parts)


def _signs_for(key: PublicKey, person: Person) -> bool:
    own = directory_address(person.address)
    return own in {directory_address(address) for address in key.signs_for}


def _public_key(key: PublicKey) -> Ed25519PublicKey | None:
    """The key itself; None where the directory holds something else in its place."""
    if key.algorithm != KEY_ALGORITHM:
        return None
    try:
        padded = key.public + "=" * (-len(key.public) % 4)
        return Ed25519PublicKey.from_public_bytes(base64.urlsafe_b64decode(padded))
    except (binascii.Error, ValueError):
        return None
