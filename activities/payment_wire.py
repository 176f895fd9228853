"""Stripe's objects, as far as this project reads them, and their translation into the domain's.

Stripe counts most currencies in ISO 4217 minor units, and three of them otherwise: króna and
shilling with two decimals for the sake of old integrations, the ariary without decimals.
"""

from typing import Any, Literal, TypeVar

import stripe
from pydantic import BaseModel, ConfigDict, StrictBool, StrictInt, ValidationError

from domain.errors import BadAnswer
from domain.instants import NumericDate
from domain.models import UNDONE, Payment, Refund
from domain.money import Money, MoneyError, exponent
from domain.names import METADATA_KEY, read_refund_key

_DECIMALS_AT_STRIPE = {"ISK": 2, "UGX": 2, "MGA": 0}
# Where Stripe gives no status at all; it counts as money that is gone (`Refund.takes_money`).
_NO_STATUS = "unknown"

Wire = TypeVar("Wire", bound="WireModel")


class WireModel(BaseModel):
    """Base: what is not listed is of no interest here."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class WireRefund(WireModel):
    id: str
    amount: StrictInt
    currency: str
    payment_intent: str
    created: NumericDate
    status: str | None
    metadata: dict[str, str] | None = None

    def to_domain(self) -> Refund:
        """The refund in the domain's words."""
        return Refund(
            id=self.id,
            payment=self.payment_intent,
            amount=money_of(self.amount, self.currency),
            status=self.status or _NO_STATUS,
            created_at=self.created,
            key=(self.metadata or {}).get(METADATA_KEY),
        )


class WireRefundPage(WireModel):
    """A page that lacks its rows, or does not say whether more follow, is no empty list."""

    object: Literal["list"]
    data: tuple[WireRefund, ...]
    has_more: StrictBool


class WireRow(WireModel):
    """A refund in the list of all refunds, where others may look as they like."""

    model_config = ConfigDict(extra="allow", frozen=True)

    id: str
    status: Any = None
    metadata: Any = None
    failure_reason: Any = None

    @property
    def is_ours(self) -> bool:
        """Whether it carries a key that we might have made: anybody may write others by hand."""
        key = self.metadata.get(METADATA_KEY) if isinstance(self.metadata, dict) else None
        return isinstance(key, str) and read_refund_key(key) is not None

    @property
    def is_undone(self) -> bool:
        return self.status in UNDONE

    def read(self, what: str) -> tuple[Refund, str]:
        """The refund in the domain's words, and the reason of its failure.

        Raises:
            BadAnswer: it does not look as documented.
        """
        reason = self.failure_reason if isinstance(self.failure_reason, str) else ""
        return read_wire(f"{what}, {self.id}", self.model_dump(), WireRefund).to_domain(), reason


class WireRowPage(WireModel):
    """A page of the list of all refunds."""

    object: Literal["list"]
    data: tuple[WireRow, ...]
    has_more: StrictBool


class WireCharge(WireModel):
    amount_captured: StrictInt
    amount_refunded: StrictInt
    currency: str
    disputed: bool


class WirePayment(WireModel):
    id: str
    currency: str
    latest_charge: WireCharge | None

    def to_domain(self, refunds: tuple[Refund, ...]) -> Payment:
        """The payment with its refunds; nothing is captured where there is no charge yet."""
        charge = self.latest_charge
        if charge is None:
            captured, refunded = money_of(0, self.currency), 0
        else:
            captured = money_of(charge.amount_captured, charge.currency)
            refunded = money_of(charge.amount_refunded, charge.currency).amount_minor
        return Payment(
            id=self.id,
            captured=captured,
            refunded_minor=refunded,
            disputed=charge is not None and charge.disputed,
            refunds=refunds,
        )


def read_wire(what: str, answer: object, wire: type[Wire]) -> Wire:
    """Validate an answer; the SDK passes on whatever JSON came, null and lists too.

    Raises:
        BadAnswer: it does not look as documented.
    """
    try:
        plain = answer.to_dict() if isinstance(answer, stripe.StripeObject) else answer
        return wire.model_validate(plain)
    except ValidationError as error:
        loc = error.errors(include_input=False)[0]["loc"]
        place = ".".join(str(part) for part in loc) or "the whole"
        raise BadAnswer(f"{what}: an answer of the wrong shape ({place})") from None


def money_of(amount: int, currency: str) -> Money:
    """Money from Stripe's number and its currency in lower case.

    Raises:
        BadAnswer: a currency that is no current ISO 4217 one, or an amount that cannot be.
    """
    try:
        code = currency.upper()
        shift = exponent(code) - _DECIMALS_AT_STRIPE.get(code, exponent(code))
        minor, rest = (amount * 10**shift, 0) if shift >= 0 else divmod(amount, 10**-shift)
        if rest:
            raise BadAnswer(f"{amount} of {code} at the provider is no whole amount")
        return Money(amount_minor=minor, currency=code)
    except (MoneyError, ValidationError):
        raise BadAnswer(f"the provider names no amount of money: {amount} {currency!r}") from None


def provider_amount(money: Money) -> int | None:
    """Stripe's number for an amount; None where Stripe cannot express it."""
    digits = exponent(money.currency)
    shift = _DECIMALS_AT_STRIPE.get(money.currency, digits) - digits
    if shift >= 0:
        return int(money.amount_minor * 10**shift)
    amount, rest = divmod(money.amount_minor, 10**-shift)
    return None if rest else amount
