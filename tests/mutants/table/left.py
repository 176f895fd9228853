"""Never more than what is left, whoever else refunds (P1)."""

from tests.mutants.mutant import Edit, Mutant, tests

LEFT = (
    Mutant(
        name="never more than what is left",
        promise="P1",
        edits=(
            Edit(
                "activities/payments.py",
                "    if order.amount.amount_minor > payment.left.amount_minor:\n",
                "    if order.amount.amount_minor < 0:\n",
            ),
        ),
        caught_by=tests(
            "activities/test_payments.py",
            "test_a_refund_that_may_not_be_is_refused_before_it_is_sent[a cent too much]",
        ),
    ),
    Mutant(
        name="a refund by hand after the re-check is seen by the attempt",
        promise="P1",
        edits=(Edit("activities/payments.py", "    if newer:\n", "    if not payment:\n"),),
        caught_by=tests(
            "activities/test_payments.py", "test_a_refund_by_hand_in_the_very_race_sends_nothing"
        ),
    ),
    Mutant(
        name="a refund by hand during the wait counts against the claim",
        promise="P1",
        edits=(Edit("domain/recheck.py", "    if by_others:\n", "    if not payment.captured:\n"),),
        caught_by=tests("domain/test_recheck.py", "test_refunded_by_hand_during_the_wait"),
    ),
    Mutant(
        name="a refund by hand before a retry counts against the claim",
        promise="P1",
        edits=(
            Edit(
                "domain/policy.py",
                "        covering = [refund for refund in others if refund.may_cover(order.id)]\n",
                "        covering = others[:0]\n",
            ),
        ),
        caught_by=tests(
            "domain/test_take_up.py", "test_what_others_refunded_before_a_retry_is_not_paid_again"
        ),
    ),
    Mutant(
        name="an order's own refunds alone cover it",
        promise="P1",
        edits=(
            Edit(
                "domain/recheck.py",
                "covering = [r for r in since_claim if r.may_cover(order_id)]",
                "covering = since_claim",
            ),
        ),
        caught_by=tests(
            "domain/test_recheck.py",
            "test_another_order_on_the_payment_takes_money_and_covers_nothing",
        ),
    ),
    Mutant(
        name="no order is refunded at another's expense",
        promise="P1",
        edits=(
            Edit(
                "domain/policy.py",
                "        payment.left, left_of_order(order, payment), key=",
                "        payment.left, payment.left, key=",
            ),
        ),
        caught_by=tests(
            "domain/test_take_up.py",
            "test_no_order_is_refunded_at_anothers_expense",
            "test_an_order_gets_no_more_than_its_own_total",
        ),
    ),
    Mutant(
        name="a dispute stops the money",
        promise="P1",
        edits=(
            Edit(
                "domain/recheck.py",
                "    if payment.disputed:\n        return disputed(payment)\n",
                "",
            ),
            Edit(
                "activities/payments.py",
                "    if payment.disputed:\n",
                "    if payment.disputed and payment.left.amount_minor == 0:\n",
            ),
        ),
        caught_by=tests(
            "workflows/test_changes.py", "test_a_dispute_during_the_wait_stops_the_money"
        ),
    ),
)
