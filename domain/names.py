"""Every name that goes over the wire, written once.

Renaming anything here breaks refunds that are waiting: they were started under the old name.
"""

import re
from enum import StrEnum
from typing import NamedTuple

TASK_QUEUE = "refunds"
REFUND_WORKFLOW = "RefundWorkflow"
SWEEP_WORKFLOW = "RefundSweep"

SIGNAL_DECIDE = "decide"
SIGNAL_WITHDRAW = "withdraw"
QUERY_STATUS = "status"
# How a worker refuses a query that it may answer a moment later (docs/decisions/0011-queries.md).
QUERY_REFUSED = "this query came before the workflow task for what it would show: ask again"

MEMO_REQUEST_ID = "request_id"

# Search attributes. Set at start, when the run begins to wait, and at the end: each further update
# would be one more billed Action.
ATTRIBUTE_STAGE = "RefundStage"
ATTRIBUTE_OUTCOME = "RefundOutcome"
ATTRIBUTE_WAITS_FOR = "RefundWaitsFor"
ATTRIBUTE_CURRENCY = "RefundCurrency"
ATTRIBUTE_AMOUNT_MINOR = "RefundAmountMinor"
ATTRIBUTE_DEADLINE = "RefundDeadline"

ATTRIBUTE_TYPES = {
    ATTRIBUTE_STAGE: "Keyword",
    ATTRIBUTE_OUTCOME: "Keyword",
    ATTRIBUTE_WAITS_FOR: "Keyword",
    ATTRIBUTE_CURRENCY: "Keyword",
    ATTRIBUTE_AMOUNT_MINOR: "Int",
    ATTRIBUTE_DEADLINE: "Datetime",
}

# Patch ids: by them a run's history says that it takes the new path of a change. An id is never
# used again for another change (docs/versioning.md).
PATCH_WHO_DECIDES = "who-decides"
PATCH_TELL_ORDER_SERVICE = "tell-order-service"


class PatchStage(StrEnum):
    """Where a change stands in its life. `tests/patch_lint.py` holds it against the calls."""

    PATCHED = "patched"
    """Both paths are in the code: `workflow.patched` chooses."""
    DEPRECATED = "deprecated"
    """The old path is gone. `workflow.deprecate_patch` bears with the markers of open runs."""
    GONE = "gone"
    """No call is left. The id stays here, so that it is never used for another change."""


PATCHES = {
    PATCH_WHO_DECIDES: PatchStage.PATCHED,
    PATCH_TELL_ORDER_SERVICE: PatchStage.PATCHED,
}

# Keys of the metadata that marks a refund at the payment provider as ours.
METADATA_KEY = "northwind_key"
METADATA_ORDER = "northwind_order"
METADATA_PROPOSAL = "northwind_proposal"

IDENTIFIER_PATTERN = r"^[A-Za-z0-9._-]{1,64}$"
_IDENTIFIER = re.compile(IDENTIFIER_PATTERN)
_WORKFLOW_PREFIX = "refund-order-"
_REFUND_PURPOSE = re.compile(r"refund\.r[0-9]{1,9}")


def is_identifier(text: str) -> bool:
    """Whether the text may be an order id, a request id or an environment's name.

    Ids become parts of URLs and keys, where `.` and `..` would mean another place.
    """
    return _IDENTIFIER.fullmatch(text) is not None and text not in (".", "..")


def workflow_id(order_id: str) -> str:
    """The one workflow id of an order: Temporal then allows one open refund per order."""
    return f"{_WORKFLOW_PREFIX}{order_id}"


def order_of_workflow(workflow: str) -> str | None:
    """The order id in a workflow id, or None where the workflow is not a refund."""
    order_id = workflow.removeprefix(_WORKFLOW_PREFIX)
    return order_id if order_id != workflow and is_identifier(order_id) else None


def request_scope(environment: str, order_id: str, request_id: str) -> str:
    """What all idempotency keys of one request begin with."""
    return f"{environment}/{workflow_id(order_id)}/{request_id}/"


def idempotency_key(scope: str, purpose: str) -> str:
    """The key of one effect of a request.

    It is made of business ids alone. A run id, an attempt or an amount would change on a reset, a
    retry or a new round, and the effect would happen twice (medusajs/medusa#16681).
    """
    return f"{scope}{purpose}"


def refund_purpose(round_number: int) -> str:
    """What stands at the end of a refund's key: `refund.r1` in the first round."""
    return f"refund.r{round_number}"


# What stands at the end of the key under which the order service hears of a refund. A request makes
# one refund at most, so it needs no round.
ORDER_PURPOSE = "order.refunded"


class RefundKey(NamedTuple):
    """Whose refund it is, as its idempotency key says."""

    environment: str
    order_id: str
    request_id: str

    @property
    def scope(self) -> str:
        """What all keys of the same request begin with."""
        return request_scope(self.environment, self.order_id, self.request_id)


def read_refund_key(key: str) -> RefundKey | None:
    """Take the key of a refund apart; None where it is none of ours.

    Anybody may write anything into the metadata of a refund by hand, so nothing is guessed.
    """
    parts = key.split("/")
    if len(parts) != 4 or _REFUND_PURPOSE.fullmatch(parts[3]) is None:
        return None
    environment, workflow, request_id, _ = parts
    order_id = order_of_workflow(workflow)
    if order_id is None or not is_identifier(environment) or not is_identifier(request_id):
        return None
    return RefundKey(environment, order_id, request_id)


def sweep_id(environment: str) -> str:
    """The id of an environment's Schedule, and what the ids of its sweeps begin with."""
    return f"refund-sweep-{environment}"


def sweep_scope(environment: str, day: str) -> str:
    """What the keys of the sweep's own mails begin with: one of a kind for each day.

    Args:
        environment: Whose sweep it is.
        day: Such as `2026-07-31`, in UTC.
    """
    return f"{environment}/{sweep_id(environment)}/{day}/"


def purpose_of(key: str) -> str:
    """The last part of an idempotency key, such as `mail.under_review`."""
    return key.rpartition("/")[2]
