"""What is left of a run in the outside world, for the checkers to read."""

from dataclasses import dataclass, field
from typing import Any

from temporalio.client import WorkflowHistory

from domain.trail import RunStatus
from starters.drill.plan import Plan


@dataclass(frozen=True)
class Sent:
    """A message that the server has taken."""

    message_id: str
    """Empty where it has none that could be read: garbage."""
    kind: str
    """`decision`, `withdrawal`, `cancel`, or the word of a message that must not count."""
    by: str = ""
    verdict: str = ""
    proposal_id: str = ""


@dataclass(frozen=True)
class Refund:
    """A refund in the provider's books."""

    refund_id: str
    amount_minor: int
    status: str
    key: str
    """Empty: made by hand."""
    proposal_id: str
    order_id: str
    """As our metadata says; empty where it was made by hand."""


@dataclass(frozen=True)
class Noted:
    """A refund that the order service has noted with the order."""

    key: str
    refund_id: str
    amount_minor: int
    times: int
    """How often it was told; only the first time changes anything."""


@dataclass(frozen=True)
class Mail:
    """A message in the company's mailbox."""

    key: str
    purpose: str
    """Such as `mail.under_review`."""
    to: tuple[str, ...]
    subject: str
    text: str
    message_id: str
    deliveries: int
    """How often it arrived; the server shows a repeat under a known key once."""


@dataclass
class Evidence:
    """All that the outside world and the history know of one plan's run."""

    plan: Plan
    request_id: str = ""
    sent: list[Sent] = field(default_factory=list)
    driver_trouble: str = ""
    """Why the driver could not carry the plan through: no progress within its bound."""
    did: list[str] = field(default_factory=list)
    """What the driver did, in order, for people."""
    missed: tuple[int, ...] = ()
    """Which of the plan's steps, counted from 0, had no effect: the run never came to their place.
    Of a refund by hand the provider's books tell."""
    voided: tuple[str, ...] = ()
    """The ids of what somebody said who had lost their right when the run looked again before the
    money."""
    cut_off_beside: int = 0
    """How often another plan has ended a worker or the company, which all of a site share."""
    right_lost_beside: bool = False
    """Whether somebody has lost their right for a while in another plan of the site."""
    histories: list[WorkflowHistory] = field(default_factory=list)
    """Of all runs of the order, oldest first: a reset or a new start makes another one."""
    status: RunStatus | None = None
    """The last run's own word at its end, to be held against the rest."""
    refunds: list[Refund] = field(default_factory=list)
    """All on the order's payment."""
    foreign_refunds: list[Refund] = field(default_factory=list)
    """Refunds elsewhere that claim to be of this order."""
    noted: list[Noted] = field(default_factory=list)
    """What the order service was told."""
    captured_minor: int = 0
    currency: str = ""
    mails: list[Mail] = field(default_factory=list)
    """Whose key is of this order."""


@dataclass(frozen=True)
class Finding:
    """A promise that was broken."""

    kind: str
    """`duplicate`, `lost`, `silent`, `wrong` or `stuck`."""
    what: str
    """In words, with the figures."""


def as_data(evidence: Evidence) -> dict[str, Any]:
    """What a report keeps of a run: everything but the histories, which `refund history` saves."""
    status = evidence.status
    return {
        "plan": evidence.plan.model_dump(mode="json", exclude_defaults=True),
        "request_id": evidence.request_id,
        "outcome": status.outcome.value if status is not None and status.outcome else None,
        "reason": status.reason if status is not None else None,
        "refunds": [vars(refund) for refund in evidence.refunds],
        "noted": [vars(noted) for noted in evidence.noted],
        "mails": [[mail.purpose, mail.deliveries] for mail in evidence.mails],
        "sent": [vars(sent) for sent in evidence.sent],
        "voided": evidence.voided,
        "did": evidence.did,
        "trouble": evidence.driver_trouble,
    }
