"""Money as whole minor units of an ISO 4217 currency: cents of a dollar, yen, fils of a dinar.

No float is ever accepted or made: 19.99 * 100 is 1998.9999999999998 (BasedHardware/omi#10158).
"""

import re
from decimal import Decimal
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictInt

# ISO 4217, list one, without funds, metals and testing codes. Two decimals unless listed below.
_CURRENCIES = frozenset(
    """
    AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD
    CAD CDF CHF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS
    GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW
    KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR
    MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR
    SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX
    USD UYU UZS VED VES VND VUV WST XAF XCD XCG XOF XPF YER ZAR ZMW ZWG
    """.split()
)
_ZERO_DECIMALS = frozenset(
    "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF".split()
)
_THREE_DECIMALS = frozenset("BHD IQD JOD KWD LYD OMR TND".split())

# Far above any order and far below what an exact integer of a JSON reader (2**53) can hold.
LARGEST_MINOR = 10**12

_AMOUNT = re.compile(r"(?P<value>[0-9]{1,15}(\.[0-9]{1,6})?)( (?P<currency>[A-Za-z]{3}))?")


class MoneyError(ValueError):
    """Text or numbers that are no amount of money; the message is one line for the sender."""


def exponent(currency: str) -> int:
    """How many decimals the currency has.

    Raises:
        MoneyError: the code is no current ISO 4217 currency.
    """
    if currency not in _CURRENCIES:
        raise MoneyError(
            f"unknown currency {currency[:12]!r}: an ISO 4217 code such as USD is needed"
        )
    if currency in _ZERO_DECIMALS:
        return 0
    return 3 if currency in _THREE_DECIMALS else 2


def _known_currency(currency: str) -> str:
    exponent(currency)
    return currency


Currency = Annotated[str, AfterValidator(_known_currency)]


class Money(BaseModel):
    """An amount of zero or more in minor units of a currency."""

    model_config = ConfigDict(frozen=True)

    amount_minor: StrictInt = Field(ge=0, le=LARGEST_MINOR)
    currency: Currency

    @property
    def decimal(self) -> Decimal:
        """The amount in major units, exact, with the currency's own number of decimals."""
        return Decimal(self.amount_minor).scaleb(-exponent(self.currency))

    def __str__(self) -> str:
        return f"{self.decimal:f} {self.currency}"

    def with_minor(self, amount_minor: int) -> Self:
        """Another amount in the same currency."""
        return self.model_validate({"amount_minor": amount_minor, "currency": self.currency})


class AmountText(BaseModel):
    """An amount as a person typed it; the currency may be left to the order."""

    model_config = ConfigDict(frozen=True)

    value: Decimal
    currency: str | None

    def in_currency(self, currency: str) -> Money:
        """The exact amount in an order's currency.

        Raises:
            MoneyError: another currency was typed, or more decimals than the currency has.
        """
        if self.currency is not None and self.currency != currency:
            raise MoneyError(f"the order is in {currency}, the amount in {self.currency}")
        digits = exponent(currency)
        minor = self.value.scaleb(digits)
        # Zeros count too: where points group thousands, 420.000 means another amount than 420.
        if -int(self.value.as_tuple().exponent) > digits:
            raise MoneyError(f"{self.value} has more decimals than {currency} has ({digits})")
        if minor > LARGEST_MINOR:
            raise MoneyError(f"{self.value} {currency} is more than any order")
        return Money(amount_minor=int(minor), currency=currency)


def parse_amount(text: str) -> AmountText:
    """Read `420.00` or `420.00 USD`: digits and at most one point, nothing guessed.

    Raises:
        MoneyError: signs, exponents, separators, zero, an unknown currency, too many digits.
    """
    match = _AMOUNT.fullmatch(text.strip())
    if match is None:
        raise MoneyError(f"{text[:40]!r} is no amount: write it like 420.00 or 420.00 USD")
    value = Decimal(match["value"])
    if value == 0:
        raise MoneyError("an amount of zero cannot be refunded")
    currency = match["currency"].upper() if match["currency"] else None
    parsed = AmountText(value=value, currency=currency)
    if currency is not None:
        parsed.in_currency(currency)
    return parsed
