"""Signing: the right key, the right claims, and no way out of the key folder."""

from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from domain.money import Money
from domain.request import Proposal, RefundRequest
from domain.statements import StatementKind, Verdict, read_claims, request_digest
from starters.errors import CommandError
from starters.statements import Signer

MARIA = "maria.silva@northwind.example"
PROPOSAL = Proposal(
    proposal_id="5f" * 16,
    round=1,
    order_id="8890",
    payment="pi_8890",
    amount=Money(amount_minor=42000, currency="USD"),
    taken_before=Money(amount_minor=0, currency="USD"),
    policy_version="2026-07",
    approvals_needed=1,
)


def write_key(file: Path, key: Ed25519PrivateKey | ec.EllipticCurvePrivateKey) -> None:
    """Write a private key as the staff's keys are written."""
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )


@pytest.fixture
def key(tmp_path: Path) -> Ed25519PrivateKey:
    """Maria's key, in the folder `tmp_path`."""
    made = Ed25519PrivateKey.generate()
    write_key(tmp_path / f"{MARIA}.pem", made)
    return made


def test_a_decision_is_signed_by_its_person(tmp_path: Path, key: Ed25519PrivateKey) -> None:
    """The signature fits the key, and the claims name person, run, proposal and verdict."""
    statement = Signer(tmp_path, MARIA).decision("local", PROPOSAL, Verdict.APPROVE, "ok")
    claims = jwt.decode(statement.token, key.public_key(), algorithms=["EdDSA"])
    assert (claims["iss"], claims["sub"], claims["env"]) == (MARIA, "refund-order-8890", "local")
    assert (claims["proposal"], claims["verdict"]) == ("5f" * 16, "approve")
    header = jwt.get_unverified_header(statement.token)
    assert (header["typ"], header["kid"]) == ("northwind-decision+jwt", "maria.silva.1")
    assert read_claims(statement.token, StatementKind.DECISION).jti == claims["jti"]


def test_each_statement_has_an_id_of_its_own(tmp_path: Path, key: Ed25519PrivateKey) -> None:
    """Two withdrawals of one request can be told apart in the trail."""
    signer = Signer(tmp_path, MARIA)
    ids = {
        read_claims(
            signer.withdrawal("local", "8890", "req-1", "").token, StatementKind.WITHDRAWAL
        ).jti
        for _ in range(2)
    }
    assert len(ids) == 2


def test_a_request_is_signed_as_a_whole(tmp_path: Path, key: Ed25519PrivateKey) -> None:
    """The statement over a request carries its id and the digest of all that is asked."""
    request = RefundRequest(
        environment="local",
        order_id="8890",
        request_id="req-1",
        message="It came broken.",
        requester=MARIA,
        statement="",
    )
    claims = jwt.decode(
        Signer(tmp_path, MARIA).request(request), key.public_key(), algorithms=["EdDSA"]
    )
    assert (claims["jti"], claims["digest"]) == ("req-1", request_digest(request))


def test_a_later_key_says_which_it_is(tmp_path: Path, key: Ed25519PrivateKey) -> None:
    """After a change of keys, the file beside the key names it as the staff directory does."""
    (tmp_path / f"{MARIA}.kid").write_text("maria.silva.2\n")
    statement = Signer(tmp_path, MARIA).decision("local", PROPOSAL, Verdict.REJECT, "")
    assert jwt.get_unverified_header(statement.token)["kid"] == "maria.silva.2"


def test_the_address_is_written_as_in_the_directory(tmp_path: Path, key: Ed25519PrivateKey) -> None:
    """Capitals and spaces around an address do not make another person."""
    assert Signer(tmp_path, " Maria.Silva@Northwind.example ").address == MARIA


@pytest.mark.parametrize(
    "address",
    [
        "../maria.silva@northwind.example",
        "keys/maria.silva@northwind.example",
        "a@b/../../c",
        "..@..",
        "a\x00@b",
        "a@b\nc",
        "maria.silva",
        "",
    ],
)
def test_an_address_is_no_path(tmp_path: Path, key: Ed25519PrivateKey, address: str) -> None:
    """What could lead out of the key folder is refused before any file is opened."""
    with pytest.raises(CommandError, match="mail address"):
        Signer(tmp_path / "keys", address)


def test_a_missing_key_names_those_that_are_there(tmp_path: Path, key: Ed25519PrivateKey) -> None:
    """Whoever has no key here is told whose keys there are."""
    with pytest.raises(CommandError, match=f"tom.becker.*keys of: {MARIA}"):
        Signer(tmp_path, "tom.becker@northwind.example")


def test_an_empty_key_folder_is_told(tmp_path: Path) -> None:
    """A folder without keys, and one that is not there, are told apart."""
    with pytest.raises(CommandError, match="holds no keys"):
        Signer(tmp_path, MARIA)
    with pytest.raises(CommandError, match=r"there is no .*elsewhere: go to the folder"):
        Signer(tmp_path / "elsewhere", MARIA)


def test_a_file_that_is_no_key_is_told(tmp_path: Path) -> None:
    """Neither text nor a key of another kind signs anything."""
    (tmp_path / f"{MARIA}.pem").write_text("no key")
    with pytest.raises(CommandError, match="no private key"):
        Signer(tmp_path, MARIA)
    write_key(tmp_path / f"{MARIA}.pem", ec.generate_private_key(ec.SECP256R1()))
    with pytest.raises(CommandError, match="Ed25519"):
        Signer(tmp_path, MARIA)


@pytest.mark.parametrize("comment", ["a" * 501, "\N{GRINNING FACE}" * 400])
def test_a_comment_that_is_too_long_is_refused_here(
    tmp_path: Path, key: Ed25519PrivateKey, comment: str
) -> None:
    """A comment that the run would not even look at is refused before it is sent."""
    with pytest.raises(CommandError, match="comment"):
        Signer(tmp_path, MARIA).decision("local", PROPOSAL, Verdict.APPROVE, comment)
