"""Hostile signals, generated: what somebody who may write to the namespace could throw at a run.

Each comes with the reason for which it must be refused; None where any reason will do, since one
changed bit may hit anything.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue

from domain.names import SIGNAL_DECIDE, SIGNAL_WITHDRAW
from domain.request import Proposal, RefundRequest
from domain.trail import Refusal
from tests.signing import SAM, TOM, Signer

LARGEST = 64 * 1024
"""Bytes of the largest payload that is generated."""

_BASE64URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_ENCODINGS: tuple[dict[str, bytes], ...] = (
    {"encoding": b"json/plain"},
    {"encoding": b"binary/plain"},
    {"encoding": b"binary/null"},
    {"encoding": b"json/protobuf", "messageType": b"no.such.Message"},
    {"encoding": b"x/y"},
    {"encoding": b"\xff\xfe"},
    {"encoding": b"json/plain", "type": b"\x00" * 100},
    {},
)
_NAMES = (
    *("aprove", "Decide", "DECIDE", " decide", "decide ", "decide\n", "withdrawal", "status"),
    *("..", "../decide", "d\u0435cide", "decide\u200b", "\u202eediced", "\U0001f4a9", "'; --"),
    *("\x00", "\x1b[31mdecide", "[decide](https://example.com)", "<script>", "n" * 900),
)


@dataclass(frozen=True)
class Hostile:
    """One signal, and why it must not count."""

    signal: str
    arguments: list[Any]
    refusal: Refusal | None


class Attacker:
    """Knows the run, its proposal and some real statements; holds no key of one who may approve."""

    def __init__(
        self, random: Random, signer: Signer, request: RefundRequest, proposal: Proposal
    ) -> None:
        """Take real statements from the wire: a good decision, a request, a withdrawal."""
        self._random = random
        self._decision = signer.decision(proposal, by=TOM).token
        self._withdrawal = signer.withdrawal(request).token
        self._own = signer.decision(proposal, by=SAM).token
        self._foreign = signer.decision(proposal, by=TOM, sub="refund-order-8891").token
        self._request = request.statement

    def signals(self, count: int) -> list[Hostile]:
        """So many signals, most of them cheap to refuse, as they would be in a flood."""
        kinds: dict[Callable[[], Hostile], int] = {
            self._bytes: 30,
            self._wrong_type: 20,
            self._nested: 6,
            self._wrong_count: 10,
            self._unknown_name: 10,
            self._cut_token: 8,
            self._other_kind: 6,
            self._twice_named: 4,
            self._changed_signature: 3,
            self._changed_bit: 4,
            self._real_but_not_here: 3,
        }
        chosen = self._random.choices(list(kinds), weights=list(kinds.values()), k=count)
        return [make() for make in chosen]

    def _size(self) -> int:
        """From nothing to 64 KB, small ones more often: a history takes 50 MB in all."""
        return int(LARGEST ** self._random.random()) - self._random.randint(0, 1)

    def _signal(self) -> str:
        return self._random.choice((SIGNAL_DECIDE, SIGNAL_WITHDRAW))

    def _payload(self, data: bytes) -> RawValue:
        return RawValue(Payload(metadata=self._random.choice(_ENCODINGS), data=data))

    def _malformed(self, *arguments: Any) -> Hostile:
        return Hostile(self._signal(), list(arguments), Refusal.MALFORMED)

    def _bytes(self) -> Hostile:
        """Random bytes under whatever encoding."""
        return self._malformed(self._payload(self._random.randbytes(self._size())))

    def _wrong_type(self) -> Hostile:
        """JSON of the wrong shape, sometimes large."""
        text = "approve" * (self._size() // 7)
        shapes: list[Any] = [
            *(None, True, 0, -1, 1.5, float("nan"), 10**400, "", text, [text], {"token": None}),
            *({"token": 7}, {"token": []}, {"token": text}, {"Token": self._decision}, {text: 1}),
            *({"token": {"token": self._decision}}, [self._decision], self._decision, {}),
        ]
        return self._malformed(self._payload(json.dumps(self._random.choice(shapes)).encode()))

    def _nested(self) -> Hostile:
        """JSON nested as deep as its size allows; nothing closes it, sometimes."""
        opening, closing = self._random.choice(((b"[", b"]"), (b'{"token":', b"}")))
        depth = self._size() // (len(opening) + len(closing))
        inner = self._random.choice((b"", b"0"))
        return self._malformed(self._payload(opening * depth + inner + closing * depth))

    def _wrong_count(self) -> Hostile:
        """No argument, or several, among them good ones."""
        good = {"token": self._decision}
        count = self._random.choice((0, 2, 3, 100))
        return self._malformed(*(self._random.choice((good, None, "x")) for _ in range(count)))

    def _unknown_name(self) -> Hostile:
        """A name that is almost right, odd, or very long, around a good decision."""
        name = self._random.choice(_NAMES)
        return Hostile(name, [{"token": self._decision}], Refusal.UNKNOWN_SIGNAL)

    def _cut_token(self) -> Hostile:
        """A real token that breaks off before its signature."""
        real, signal = self._random.choice(
            ((self._decision, SIGNAL_DECIDE), (self._withdrawal, SIGNAL_WITHDRAW))
        )
        cut = real[: self._random.randrange(real.rindex("."))]
        return Hostile(signal, [{"token": cut}], Refusal.MALFORMED)

    def _other_kind(self) -> Hostile:
        """A real statement of one kind, sent as another."""
        signal, token = self._random.choice(
            (
                (SIGNAL_DECIDE, self._withdrawal),
                (SIGNAL_DECIDE, self._request),
                (SIGNAL_WITHDRAW, self._decision),
                (SIGNAL_WITHDRAW, self._request),
            )
        )
        return Hostile(signal, [{"token": token}], Refusal.MALFORMED)

    def _twice_named(self) -> Hostile:
        """A good token and a bad one under the same name: the last one is what was said."""
        text = f'{{"token": "{self._decision}", "token": "a.b.c"}}'
        return Hostile(SIGNAL_DECIDE, [self._payload(text.encode())], Refusal.MALFORMED)

    def _changed_signature(self) -> Hostile:
        """A real decision with one character of its signature changed.

        Not the last one: four of its bits are padding, so another character may say the same.
        """
        at = self._random.randrange(self._decision.rindex(".") + 1, len(self._decision) - 1)
        token = self._exchange(at, [c for c in _BASE64URL if c != self._decision[at]])
        return Hostile(SIGNAL_DECIDE, [{"token": token}], Refusal.BAD_SIGNATURE)

    def _changed_bit(self) -> Hostile:
        """A real decision with one character of its header or claims changed."""
        at = self._random.randrange(self._decision.rindex("."))
        token = self._exchange(at, [c for c in _BASE64URL + ".=" if c != self._decision[at]])
        return Hostile(SIGNAL_DECIDE, [{"token": token}], None)

    def _real_but_not_here(self) -> Hostile:
        """Well signed, and of no use: for another run, or by the requester; again and again."""
        token, refusal = self._random.choice(
            ((self._foreign, Refusal.OTHER_RUN), (self._own, Refusal.IS_REQUESTER))
        )
        return Hostile(SIGNAL_DECIDE, [{"token": token}], refusal)

    def _exchange(self, at: int, others: list[str]) -> str:
        token = self._decision
        return token[:at] + self._random.choice(others) + token[at + 1 :]
