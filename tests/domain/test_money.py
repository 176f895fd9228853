# ruff: noqa: RUF001 - letters and digits that look alike are the point here
"""Amounts are exact, and what is no amount is refused with one line."""

from decimal import Decimal

import pytest
from babel.core import get_global
from babel.numbers import get_territory_currencies
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from domain.money import (
    _CURRENCIES,
    LARGEST_MINOR,
    Money,
    MoneyError,
    exponent,
    parse_amount,
)
from tests.domain.build import NOW

CURRENCIES = st.sampled_from(sorted(_CURRENCIES))

# Where CLDR says how many decimals are in everyday use, and ISO 4217 how many there are.
FEWER_DECIMALS_IN_CLDR = set("AFN ALL COP HUF IDR IQD IRR KPW LAK LBP MGA MMK SOS SYP YER".split())


@given(minor=st.integers(1, LARGEST_MINOR), currency=CURRENCIES)
def test_text_and_minor_units_are_the_same_amount(minor: int, currency: str) -> None:
    """Whatever is printed can be typed again and is the same amount, in every currency."""
    money = Money(amount_minor=minor, currency=currency)
    assert parse_amount(str(money)).in_currency(currency) == money
    assert parse_amount(f"{money.decimal:f}").in_currency(currency) == money
    assert money.decimal * 10 ** exponent(currency) == minor


@pytest.mark.parametrize(
    ("text", "currency", "minor"),
    [
        ("19.99", "USD", 1_999),
        ("145.05", "USD", 14_505),
        ("8.29", "USD", 829),
        ("420.1", "USD", 42_010),
        ("420", "USD", 42_000),
        ("420.00 USD", "USD", 42_000),
        ("420.00 usd", "USD", 42_000),
        (" 0420.00\n", "USD", 42_000),
        ("0.01", "USD", 1),
        ("500", "JPY", 500),
        ("500 JPY", "JPY", 500),
        ("45.500", "KWD", 45_500),
        ("45.5", "KWD", 45_500),
        ("10000000000.00", "USD", LARGEST_MINOR),
    ],
)
def test_amounts_are_exact(text: str, currency: str, minor: int) -> None:
    """No amount is a cent off (BasedHardware/omi#10158), and yen are not multiplied by 100."""
    assert parse_amount(text).in_currency(currency).amount_minor == minor


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "-1", "+1", "−1", "0", "0.00", "0 USD", ".5", "5.", "1e9", "1E2", "0x10"),
        *("1,000.00", "1'000", "1 000", "1_000", "1.000.000", "420,00", "$420", "420 $", "420USD"),
        *("NaN", "inf", "Infinity", "sNaN", "all", "٤٢٠", "４２０", "42²", "½", "420.٠٠"),
        *("420  USD", "420\nUSD", "420 US", "420 USDD", "420 UŞD", "420 XXX", "420 BTC", "\ud800"),
        *("1.005 USD", "420.000 USD", "1.5 JPY", "1.0 JPY", "1.0001 KWD", "0.0000001"),
        *("9" * 16, "10000000000.01 USD", "1" * 5_000),
    ],
)
def test_what_is_no_amount_is_refused(text: str) -> None:
    """Nothing is guessed: the answer is one short line for the sender."""
    with pytest.raises(MoneyError) as refused:
        parse_amount(text)
    assert len(str(refused.value)) < 120
    assert "\n" not in str(refused.value)


@given(text=st.text(max_size=50))
def test_any_text_is_an_amount_or_a_money_error(text: str) -> None:
    """No text ends in another error, and an accepted one is above zero in every currency."""
    try:
        parsed = parse_amount(text)
    except MoneyError:
        return
    assert parsed.value > 0


@pytest.mark.parametrize(
    ("text", "currency", "says"),
    [
        ("420.00 EUR", "USD", "the order is in USD, the amount in EUR"),
        ("0.333", "USD", "more decimals than USD"),
        ("420.000", "USD", "more decimals than USD"),
        ("500.0", "JPY", "more decimals than JPY"),
        ("10000000000.01", "USD", "more than any order"),
        ("1", "usd", "unknown currency"),
    ],
)
def test_an_amount_must_fit_the_currency_of_the_order(text: str, currency: str, says: str) -> None:
    """Another currency or a part of a cent is refused, never converted or rounded."""
    with pytest.raises(MoneyError, match=says):
        parse_amount(text).in_currency(currency)


@pytest.mark.parametrize(
    "minor",
    [
        42000.0,
        0.5,
        float("nan"),
        float("inf"),
        True,
        "42000",
        Decimal(42_000),
        None,
        -1,
        10**12 + 1,
    ],
)
def test_minor_units_are_whole_numbers_and_nothing_else(minor: object) -> None:
    """A float, a truth value, text or a negative number never becomes money."""
    with pytest.raises(ValidationError):
        Money.model_validate({"amount_minor": minor, "currency": "USD"})


@pytest.mark.parametrize("number", ["42000.0", "4.2e4", "NaN", "true", '"42000"', "1" * 400])
def test_no_float_enters_through_json(number: str) -> None:
    """What other programs write as a float is refused too, even where it is whole."""
    with pytest.raises(ValidationError):
        Money.model_validate_json(f'{{"amount_minor": {number}, "currency": "USD"}}')


@pytest.mark.parametrize(
    "currency", ["usd", "US", "USDD", "", "XXX", "BTC", "ＵＳＤ", "USD\n", None]
)
def test_an_unknown_currency_is_refused(currency: object) -> None:
    """Money has a current ISO 4217 currency, in capitals."""
    with pytest.raises(ValidationError):
        Money.model_validate({"amount_minor": 1, "currency": currency})


def test_currencies_and_their_decimals_are_those_of_iso_4217() -> None:
    """The table agrees with CLDR, but for the currencies whose small coins have gone out of use."""
    fractions = get_global("currency_fractions")
    cldr = {code: fractions.get(code, fractions["DEFAULT"])[0] for code in _CURRENCIES}
    differ = {code for code in _CURRENCIES if cldr[code] != exponent(code)}
    assert differ == FEWER_DECIMALS_IN_CLDR
    assert all(cldr[code] == 0 for code in differ)


def test_every_currency_in_use_is_known() -> None:
    """Legal tender of any territory can be refunded; besides it only two rare codes are listed."""
    in_use = {
        code
        for territory in get_global("territory_currencies")
        for code in get_territory_currencies(territory, NOW.date(), tender=True)
    }
    assert in_use - _CURRENCIES == set()
    assert _CURRENCIES - in_use == {"SVC", "VED"}


@given(minor=st.integers(0, LARGEST_MINOR), other=st.integers(), currency=CURRENCIES)
def test_another_amount_keeps_the_currency_and_the_bounds(
    minor: int, other: int, currency: str
) -> None:
    """Arithmetic that leaves the bounds of money is an error, not a wrong amount."""
    money = Money(amount_minor=minor, currency=currency)
    if 0 <= other <= LARGEST_MINOR:
        assert money.with_minor(other) == Money(amount_minor=other, currency=currency)
    else:
        with pytest.raises(ValidationError):
            money.with_minor(other)
