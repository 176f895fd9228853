"""What the payment provider's errors mean for us."""

import stripe

from domain.errors import (
    BadAnswer,
    KeyInUse,
    Misconfigured,
    OutsideError,
    RateLimited,
    Refused,
    ServerFault,
    Unreachable,
)


def outside_error(what: str, error: stripe.StripeError) -> OutsideError:
    """Our error for one of the SDK's; the provider's words are kept only where it says no."""
    status = error.http_status
    wait = _retry_after_seconds(error)
    match error:
        case stripe.APIConnectionError():
            return Unreachable(f"{what}: no answer from the payment provider")
        case stripe.RateLimitError():
            return RateLimited(f"{what}: not now ({status})", retry_after_seconds=wait)
        case stripe.AuthenticationError() | stripe.PermissionError():
            # The provider's own words show a part of the key.
            return Misconfigured(f"{what}: not allowed ({status}); look at STRIPE_API_KEY")
        case stripe.InvalidRequestError() if status == 404 and error.code is None:
            return Misconfigured(f"{what}: no such page ({status}); look at NORTHWIND_PAYMENTS_URL")
        case stripe.InvalidRequestError() | stripe.CardError() | stripe.IdempotencyError():
            words = error.user_message or "no reason given"
            return Refused(f"{what}: {words}", code=error.code or _code(error))
    if status == 409:
        return KeyInUse(f"{what}: an attempt still runs ({status})", retry_after_seconds=wait)
    if status is not None and status >= 500:
        return ServerFault(f"{what}: the provider failed ({status})", retry_after_seconds=wait)
    return BadAnswer(f"{what}: an answer that is not the payment API's ({status})")


def _code(error: stripe.StripeError) -> str:
    """A word for a no that has no code; "more than is left" is such a one."""
    if isinstance(error, stripe.InvalidRequestError) and error.param:
        return f"invalid_{error.param}"
    return "invalid_request"


def _retry_after_seconds(error: stripe.StripeError) -> float | None:
    headers = error.headers or {}
    text = next((value for name, value in headers.items() if name.lower() == "retry-after"), "")
    return float(text) if text.isascii() and text.isdigit() else None
