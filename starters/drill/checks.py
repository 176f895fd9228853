"""Every promise that a drill holds a run to, read from the outside books first.

`check_money`, `check_mail`, `check_orders` and `check_history` each look at one side; what the run
says of itself is only ever held against what others have written down.
"""

from itertools import chain

from starters.drill import check_history, check_mail, check_money, check_orders
from starters.drill.evidence import Evidence, Finding
from starters.drill.look import Story

_CHECKS = (
    check_history.stuck,
    check_money.duplicate_refunds,
    check_mail.repeated,
    check_history.lost,
    check_mail.unheard,
    check_mail.untold,
    check_orders.untold_orders,
    check_orders.wrong_orders,
    check_money.wrong_refunds,
    check_money.wrong_outcome,
    check_mail.untrue,
)


def check(evidence: Evidence) -> list[Finding]:
    """Everything that is wrong with a run; nothing where all promises were kept."""
    story = Story(evidence)
    return list(chain.from_iterable(checker(story) for checker in _CHECKS))
