"""Idempotency keys as Stripe keeps them: the first answer is replayed for 24 hours."""

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from northwind.payment_objects import Answer, PaymentError
from northwind.store import read_setting, write_setting

KEPT_SECONDS = 24 * 3600
MAX_KEY_LENGTH = 255
KNOWS_KEYS = "payments_know_keys"


@dataclass(frozen=True)
class KeyedRequest:
    """A POST with its key (None: it has none) and a digest of where it goes and what it says."""

    key: str | None
    fingerprint: str
    request_id: str


def fingerprint(path: str, pairs: Sequence[tuple[str, str]]) -> str:
    """A digest of endpoint and parameters; the order of the parameters does not matter."""
    canonical = json.dumps([path, sorted(pairs)], separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


class HeldKeys:
    """The keys of requests that are being worked on; a killed process holds none."""

    def __init__(self) -> None:
        """Hold no key yet."""
        self._held: dict[str, str] = {}

    @contextmanager
    def hold(self, request: KeyedRequest) -> Iterator[None]:
        """Hold the request's key while it is worked on. Raises PaymentError if it is held."""
        if request.key is None:
            yield
            return
        if len(request.key) > MAX_KEY_LENGTH:
            raise PaymentError(
                400, f"Idempotency keys can be up to {MAX_KEY_LENGTH} characters long."
            )
        if request.key in self._held:
            raise (
                _mismatch(request.key)
                if self._held[request.key] != request.fingerprint
                else _in_use(request.key)
            )
        self._held[request.key] = request.fingerprint
        try:
            yield
        finally:
            del self._held[request.key]


def forget(db: sqlite3.Connection, about: str) -> int:
    """Forget the keys that mention a text, as a provider does after a day; how many there were."""
    gone = db.execute("delete from idempotency_keys where instr(key, ?) > 0", (about,))
    return gone.rowcount


def once(
    db: sqlite3.Connection, now: float, request: KeyedRequest, execute: Callable[[], Answer]
) -> Answer:
    """Execute the request, or replay what its key's first request was answered.

    Effect and stored answer are one transaction of the caller: a killed process leaves both or
    neither. Raises PaymentError when the key was first used with other parameters, and what
    `execute` raises; then nothing is stored.
    """
    if request.key is None or read_setting(db, KNOWS_KEYS) == "no":
        return execute()
    db.execute("delete from idempotency_keys where created <= ?", (now - KEPT_SECONDS,))
    stored = db.execute("select * from idempotency_keys where key = ?", (request.key,)).fetchone()
    if stored is not None:
        if stored["fingerprint"] != request.fingerprint:
            raise _mismatch(request.key)
        return Answer(stored["status"], json.loads(stored["body"]), replay_of=stored["request_id"])
    answer = execute()
    db.execute(
        "insert into idempotency_keys (key, fingerprint, status, body, request_id, created)"
        " values (?, ?, ?, ?, ?, ?)",
        (
            request.key,
            request.fingerprint,
            answer.status,
            json.dumps(answer.body),
            request.request_id,
            now,
        ),
    )
    return answer


def set_knows_keys(db: sqlite3.Connection, known: bool) -> None:
    """Make the provider replay answers, or be one that forgets a key with its answer."""
    write_setting(db, KNOWS_KEYS, "yes" if known else "no")


def _mismatch(key: str) -> PaymentError:
    return PaymentError(
        400,
        "Keys for idempotent requests can only be used with the same parameters they were first "
        f"used with. Try using a key other than '{key}' if you meant to execute a different "
        "request.",
        kind="idempotency_error",
    )


def _in_use(key: str) -> PaymentError:
    return PaymentError(
        409,
        "There is currently another in-progress request using this Idempotent Key (that probably "
        "means you submitted twice, and the other request is still going through): "
        f"{key}. Please try again later.",
        kind="idempotency_error",
        code="idempotency_key_in_use",
        headers={"Stripe-Should-Retry": "true"},
    )
