# ruff: noqa: RUF001 - letters that look alike are the point here
"""Statements that nobody with the right has signed, and keys that come and go (P2, issue 4)."""

import base64
import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from domain.models import Outcome, Stage
from domain.names import SIGNAL_DECIDE, SIGNAL_WITHDRAW
from domain.request import Proposal
from domain.statements import ALGORITHM, SignedStatement, StatementKind
from domain.trail import Refusal
from tests.faults.support import fault, mend, set_faults
from tests.signing import MARIA, SAM, TOM, Signer
from tests.world import Run, World

PAID = [(42000, "succeeded")]
SECOND = f"{MARIA}.2"
"""The name of the file that holds Maria's second key."""

# What a member of staff signs with a good key, claims changed.
SIGNED: dict[str, tuple[dict[str, Any], Refusal]] = {
    "a time with a fraction": ({"iat": time.time()}, Refusal.MALFORMED),
    "a time in milliseconds": ({"iat": int(time.time() * 1000)}, Refusal.MALFORMED),
    "a time that is no number": ({"iat": float("nan")}, Refusal.MALFORMED),
    "a time without end": ({"iat": float("inf")}, Refusal.MALFORMED),
    "a time of four hundred digits": ({"iat": 10**400}, Refusal.MALFORMED),
    "a time before the year 1": ({"iat": -(10**12)}, Refusal.MALFORMED),
    "a time before all keys": ({"iat": -1}, Refusal.KEY_NOT_VALID),
    "a Cyrillic letter": ({"iss": MARIA.replace("a", "а", 1)}, Refusal.UNKNOWN_PERSON),
    "a wide letter": ({"iss": MARIA.replace("m", "ｍ", 1)}, Refusal.UNKNOWN_PERSON),
    "a letter of no width": ({"iss": f"{MARIA}\u200b"}, Refusal.UNKNOWN_PERSON),
    "a zero byte": ({"iss": f"{MARIA}\x00"}, Refusal.UNKNOWN_PERSON),
    "letters from right to left": ({"iss": f"\u202e{MARIA}"}, Refusal.UNKNOWN_PERSON),
    "one host behind another": ({"iss": f"{MARIA}@attacker.example"}, Refusal.UNKNOWN_PERSON),
    "the requester with an old s": (
        {"by": SAM, "iss": "ſam.okafor@northwind.example"},
        Refusal.IS_REQUESTER,
    ),
    "the requester with a tag": (
        {"by": SAM, "iss": "sam.okafor+boss@northwind.example"},
        Refusal.UNKNOWN_PERSON,
    ),
}


async def test_nothing_that_is_forged_counts(world: World) -> None:
    """Each forgery has its own reason, nothing is paid, and then Maria herself approves."""
    other = await world.start("8896")
    elsewhere = world.signer.decision(await other.waiting()).token
    run = await world.start()
    proposal = await run.waiting()
    sent = {
        "an approval of another run": (SIGNAL_DECIDE, elsewhere, Refusal.OTHER_RUN),
        **of_another_kind(world.signer, run, proposal),
        **by_a_stranger(world.signer, proposal),
    }
    for name, (changes, reason) in SIGNED.items():
        token = world.signer.decision(proposal, **changes).token
        sent[name] = (SIGNAL_DECIDE, token, reason)
    for signal, token, _ in sent.values():
        await run.handle.signal(signal, SignedStatement(token=token))
    status = await run.until(lambda s: sum(s.refused.values()) == len(sent))

    answers = [entry.refusal for entry in status.trail if entry.refusal is not None]
    reasons = [reason for _, _, reason in sent.values()]
    assert dict(zip(sent, answers, strict=True)) == dict(zip(sent, reasons, strict=True))
    assert status.stage is Stage.AWAITING_APPROVAL
    assert await world.refunds() == []
    assert (await run.approve()).what == "approved"
    assert (await run.result()).outcome is Outcome.REFUNDED
    assert await world.refunds() == PAID


Forgeries = dict[str, tuple[str, str, Refusal]]


def of_another_kind(signer: Signer, run: Run, proposal: Proposal) -> Forgeries:
    """Well signed by people with the right, for something else."""
    decision, withdrawal = signer.decision(proposal).token, signer.withdrawal(run.request).token
    claims = jwt.decode(decision, options={"verify_signature": False})
    del claims["kind"]
    both = {**claims, "request": run.request.request_id}
    of_both = signer.sign(StatementKind.WITHDRAWAL, MARIA, both).token
    return {
        "a withdrawal with all that a decision says": (SIGNAL_DECIDE, of_both, Refusal.MALFORMED),
        "a withdrawal as a decision": (SIGNAL_DECIDE, withdrawal, Refusal.MALFORMED),
        "a request as a decision": (SIGNAL_DECIDE, run.request.statement, Refusal.MALFORMED),
        "a decision as a withdrawal": (SIGNAL_WITHDRAW, decision, Refusal.MALFORMED),
        "a request as a withdrawal": (SIGNAL_WITHDRAW, run.request.statement, Refusal.MALFORMED),
    }


def by_a_stranger(signer: Signer, proposal: Proposal) -> Forgeries:
    """What somebody without a key makes of a real decision."""
    header, claims, signature = signer.decision(proposal).token.split(".")
    stranger = Ed25519PrivateKey.generate()
    public = encoded(stranger.public_key().public_bytes_raw())
    plain = {"alg": ALGORITHM, "typ": StatementKind.DECISION.value, "kid": "maria.silva.1"}

    def token(**changes: Any) -> str:
        start = f"{encoded(json.dumps({**plain, **changes}).encode())}.{claims}"
        return f"{start}.{encoded(stranger.sign(start.encode()))}"

    said = jwt.utils.base64url_decode(claims)
    pem = (signer.keys / f"{MARIA}.pem").read_bytes()
    own = serialization.load_pem_private_key(pem, None)
    assert isinstance(own, Ed25519PrivateKey)
    known = own.public_key().public_bytes_raw()
    tokens = {
        "no algorithm": (f"{token(alg='none').rpartition('.')[0]}.", Refusal.MALFORMED),
        "no signature": (f"{header}.{claims}.", Refusal.BAD_SIGNATURE),
        "a signature too many": (f"{header}.{claims}.{signature}.{signature}", Refusal.MALFORMED),
        # The attack on libraries that take any algorithm: what everybody knows, as the secret.
        "the public key as a secret": (
            jwt.api_jws.encode(said, known, "HS256", {**plain, "alg": "HS256"}),
            Refusal.MALFORMED,
        ),
        "a key of one's own": (token(), Refusal.BAD_SIGNATURE),
        "a key brought along": (
            token(jwk={"kty": "OKP", "crv": "Ed25519", "x": public}),
            Refusal.BAD_SIGNATURE,
        ),
        "a place of keys": (token(jku="http://127.0.0.1:9/jwks"), Refusal.BAD_SIGNATURE),
        "a place of certificates": (token(x5u="http://127.0.0.1:9/x.pem"), Refusal.BAD_SIGNATURE),
        "a certificate": (token(x5c=[public]), Refusal.BAD_SIGNATURE),
        "a key id that is a file": (token(kid="../../../dev/null"), Refusal.UNKNOWN_KEY),
        "a key id that is a list": (token(kid=["maria.silva.1"]), Refusal.MALFORMED),
        "an unknown critical header": (token(crit=["exp"], exp=1), Refusal.BAD_SIGNATURE),
        "claims that are not encoded": (token(crit=["b64"], b64=False), Refusal.BAD_SIGNATURE),
    }
    return {name: (SIGNAL_DECIDE, *rest) for name, rest in tokens.items()}


def encoded(data: bytes) -> str:
    """Bytes as a part of a compact JWS."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


async def test_while_keys_change_both_count(world: World) -> None:
    """Rotation: with two keys valid at once, an approval by either one counts."""
    await give_second_key(world)
    for order, how in (
        ("8890", {}),
        ("8896", {"key_of": SECOND, "headers": {"kid": "maria.silva.2"}}),
    ):
        run = await world.start(order)
        assert (await run.approve(**how)).what == "approved"
        assert (await run.result()).outcome is Outcome.REFUNDED


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"valid_until": -3600}, id="has-ended"),
        pytest.param({"valid_from": 3600}, id="has-not-begun"),
    ],
)
async def test_a_key_outside_its_time_does_not_count(world: World, changes: dict[str, int]) -> None:
    """Whatever date it signs with: today, or an earlier one at which the key was still good."""
    run = await world.start()
    proposal = await run.waiting()
    await change_key(world, **changes)
    for at in (time.time(), time.time() - 2 * 3600):
        answer = await run.send(world.signer.decision(proposal, at=at))
        assert answer.refusal is Refusal.KEY_NOT_VALID
    assert (await run.approve(by=TOM)).what == "approved"


@pytest.mark.parametrize(
    "withdrawn", ["taken away", "as of before"], ids=["taken-away", "as-of-before"]
)
async def test_a_key_that_is_withdrawn_before_the_money_takes_its_approval_along(
    world: World, withdrawn: str
) -> None:
    """R13: the run waits again under the same deadline, the others hear why, and Tom approves."""
    run = await approved_and_held(world)
    deadline = (await run.status()).deadline
    if withdrawn == "taken away":
        await world.control(f"staff/{MARIA}", {"keys": []})
    else:
        await change_key(world, valid_until=-60)
    await mend(world)
    status = await run.until(lambda s: "approval_lost" in [e.what for e in s.trail])

    assert (status.stage, status.deadline) == (Stage.AWAITING_APPROVAL, deadline)
    assert await world.refunds() == []
    assert (await run.approve(by=TOM)).what == "approved"
    assert (await run.result()).outcome is Outcome.REFUNDED
    asked = await world.mail("approver_lost.1.r1")
    assert TOM in asked["to"]
    reason = Refusal.UNKNOWN_KEY if withdrawn == "taken away" else Refusal.KEY_NOT_VALID
    assert f"Maria Silva ({reason})" in asked["text"]
    assert await world.refunds() == PAID


async def test_a_key_that_ends_after_it_signed_leaves_its_approval(world: World) -> None:
    """Rotation: a key that was good when it signed need not be good when the money moves."""
    run = await approved_and_held(world)
    await change_key(world, valid_until=0)
    await mend(world)
    assert (await run.result()).outcome is Outcome.REFUNDED
    assert await world.refunds() == PAID


async def approved_and_held(world: World) -> Run:
    """A run that Maria has approved, held before the re-check by orders that cannot be read."""
    run = await world.start()
    proposal = await run.waiting()
    await set_faults(world, fault("orders.get", "fail_before", call="every"))
    await run.send(world.signer.decision(proposal, at=time.time() - 30))
    await run.until(lambda s: s.stage is Stage.RECHECKING)
    return run


async def change_key(world: World, **seconds: int) -> None:
    """Change when Maria's key begins or ends, in seconds from now."""
    [key] = (await world.http.get(f"/staff/{MARIA}")).json()["keys"]
    times = {
        name: (datetime.now(UTC) + timedelta(seconds=shift)).isoformat()
        for name, shift in seconds.items()
    }
    await world.control(f"staff/{MARIA}", {"keys": [key | times]})


async def give_second_key(world: World) -> None:
    """Give Maria a second key beside her first one."""
    made = Ed25519PrivateKey.generate()
    (world.signer.keys / f"{SECOND}.pem").write_bytes(
        made.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    [key] = (await world.http.get(f"/staff/{MARIA}")).json()["keys"]
    public = encoded(made.public_key().public_bytes_raw())
    more = {**key, "kid": "maria.silva.2", "public": public}
    await world.control(f"staff/{MARIA}", {"keys": [key, more]})
