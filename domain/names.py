"""Every name that goes over the wire, written once.

Renaming anything here breaks refunds that are waiting: they were started under the old name.
"""

import re

TASK_QUEUE = "refunds"
REFUND_WORKFLOW = "RefundWorkflow"

SIGNAL_DECIDE = "decide"
SIGNAL_WITHDRAW = "withdraw"
QUERY_STATUS = "status"

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

# Keys of the metadata that marks a refund at the payment provider as ours.
METADATA_KEY = "northwind_key"
METADATA_ORDER = "northwind_order"
METADATA_PROPOSAL = "northwind_proposal"

IDENTIFIER_PATTERN = r"^[A-Za-z0-9._-]{1,64}$"
_IDENTIFIER = re.compile(IDENTIFIER_PATTERN)
_WORKFLOW_PREFIX = "refund-order-"


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


def order_of_key(key: str) -> str | None:
    """The order whose refund made a key, or None where the key is none of ours."""
    parts = key.split("/")
    return order_of_workflow(parts[1]) if len(parts) == 4 else None


def purpose_of(key: str) -> str:
    """The last part of an idempotency key, such as `mail.under_review`."""
    return key.rpartition("/")[2]
