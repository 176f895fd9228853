"""Unknown is not failed (P8)."""

from tests.mutants.mutant import Edit, Mutant, tests

UNKNOWN = (
    Mutant(
        name="an order service whose answer says nothing is asked again",
        promise="P8",
        edits=(
            Edit(
                "activities/company.py",
                "        if _parse(what, response, type(document)) != document:\n",
                "        if not document:\n",
            ),
        ),
        caught_by=tests(
            "activities/test_orders.py", "test_an_answer_that_says_nothing_is_tried_again[HTML]"
        ),
    ),
    Mutant(
        name="a lost answer is not a no",
        promise="P8",
        edits=(
            Edit(
                "activities/payment_errors.py",
                'return Unreachable(f"{what}: no answer from the payment provider")',
                'return Refused(f"{what}: no answer from the payment provider", code="lost")',
            ),
        ),
        caught_by=tests(
            "activities/test_payments.py",
            "test_an_unclear_answer_is_an_error_and_the_next_attempt_refunds_once[answer lost]",
        ),
    ),
    Mutant(
        name="no new key while a cut-off attempt may still arrive",
        promise="P8",
        edits=(
            Edit(
                "workflows/paying.py",
                "        if attempt is None or attempt.attempt > 1:\n",
                "        if attempt is None:\n",
            ),
        ),
        caught_by=tests(
            "workflows/test_unknown.py",
            "test_no_new_key_while_an_earlier_attempt_may_still_arrive",
        ),
    ),
    Mutant(
        name="an end without a refund looks once more where an attempt was cut off",
        promise="P8",
        edits=(
            Edit(
                "workflows/refund.py",
                "        if not state.unresolved or close.outcome not in _SAYS_NO_REFUND:\n",
                "        if close is not None:\n",
            ),
        ),
        caught_by=tests(
            "workflows/test_unknown.py",
            "test_a_cut_off_attempt_that_arrives_late_is_told_although_it_was_withdrawn",
        ),
    ),
    Mutant(
        name="a refund that nobody can find is not confirmed",
        promise="P8",
        edits=(
            Edit(
                "workflows/paying.py",
                "    state.enter(Stage.VERIFYING)\n",
                "    state.enter(Stage.VERIFYING)\n"
                "    if (end := _end_of(refund, refund)) is not None:\n"
                "        return end\n",
            ),
        ),
        caught_by=tests(
            "workflows/test_unknown.py",
            "test_a_provider_that_says_ok_and_does_nothing_is_not_believed",
        ),
    ),
    Mutant(
        name="a week of not knowing ends with a person",
        promise="P8",
        edits=(
            Edit(
                "workflows/paying.py",
                "        if waited >= _UNKNOWN_PATIENCE:\n            break\n",
                "",
            ),
        ),
        caught_by=tests(
            "workflows/test_unknown.py", "test_a_week_of_not_knowing_ends_with_a_person"
        ),
    ),
    Mutant(
        name="after an hour of not knowing a person is told",
        promise="P8",
        edits=(
            Edit(
                "workflows/paying.py",
                "        if attempt is None or waited >= calls.REFUND_PATIENCE:\n",
                "        if waited >= _UNKNOWN_PATIENCE:\n",
            ),
        ),
        caught_by=tests(
            "workflows/test_unknown.py",
            "test_a_person_is_told_after_an_hour_of_not_knowing",
        ),
    ),
)
