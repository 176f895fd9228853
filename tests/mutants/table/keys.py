"""Keys and look-ups: a repeat pays nothing (P1)."""

from tests.mutants.mutant import Edit, Mutant, tests

_NO_LOOK_UP = Edit(
    "activities/payments.py",
    "found = _find_ours(order, payment)",
    "found = _find_ours(order, None)",
)

KEYS = (
    Mutant(
        name="the same key for all attempts",
        promise="P1",
        # The SDK then makes one up for each request.
        edits=(Edit("activities/payments.py", 'params, {"idempotency_key": order.key}', "params"),),
        caught_by=(
            tests(
                "activities/test_payments.py",
                "test_our_key_with_other_parameters_is_a_contradiction",
            )
            + tests(
                "faults/test_refund.py",
                "test_a_client_that_gave_up_finds_what_the_provider_still_did",
            )
            + (("refund", "drill", "--apart", "h-goes-on.refund.r1.before"),)
        ),
    ),
    Mutant(
        name="keys of business ids, not of the run's",
        promise="P1",
        edits=(
            Edit(
                "workflows/state.py",
                "self.request.environment, self.request.order_id, self.request.request_id",
                "self.request.environment, self.request.order_id, workflow.info().run_id",
            ),
        ),
        caught_by=tests(
            "workflows/test_recovery.py",
            "test_terminated_after_the_refund_and_started_again",
            "test_a_reset_pays_nothing_twice_and_mails_nothing_twice[first task]",
        ),
    ),
    Mutant(
        name="the order service is told under a key of the request",
        promise="P1",
        edits=(
            Edit(
                "workflows/orders.py",
                "key=state.key(ORDER_PURPOSE)",
                "key=state.key(workflow.info().run_id)",
            ),
        ),
        caught_by=tests(
            "faults/test_order_service.py",
            "test_a_run_that_is_started_again_says_it_under_the_same_key",
        ),
    ),
    Mutant(
        name="look-up before each attempt",
        promise="P1",
        edits=(_NO_LOOK_UP,),
        caught_by=tests(
            "activities/test_payments.py",
            "test_a_refund_is_found_after_its_key_was_forgotten",
            "test_a_provider_that_ignores_keys_gets_one_request",
        ),
    ),
    Mutant(
        name="look-up before each attempt and in each re-check",
        promise="P1",
        edits=(
            _NO_LOOK_UP,
            Edit(
                "domain/case.py",
                "        if not made:\n",
                "        made = []\n        if not made:\n",
            ),
        ),
        caught_by=(
            tests(
                "faults/test_refund.py",
                "test_a_lost_answer_is_looked_up_by_a_new_worker[30-hours-later-keys-ignored]",
            )
            + tests("domain/test_recheck.py", "test_our_own_refund_is_found_first")
            + tests("domain/test_take_up.py", "test_a_refund_of_this_request_is_taken_up_again")
        ),
    ),
    Mutant(
        name="all pages of the look-up",
        promise="P1",
        edits=(
            Edit(
                "activities/payments.py",
                "            if not page.has_more:\n                return tuple(refunds)",
                "            return tuple(refunds)",
            ),
        ),
        caught_by=tests(
            "activities/test_payments_stranger.py",
            "test_our_refund_is_found_among_more_than_a_page_and_other_payments",
        ),
    ),
    Mutant(
        name="only an exact match is adopted",
        promise="P1",
        edits=(
            Edit(
                "activities/payments.py",
                "exact = refund.amount == order.amount and refund.payment == order.payment",
                "exact = True",
            ),
        ),
        caught_by=tests(
            "activities/test_payments.py", "test_our_mark_on_another_amount_is_a_contradiction"
        ),
    ),
    Mutant(
        name="nothing is sent on facts older than five minutes",
        promise="P1",
        edits=(
            Edit(
                "activities/payments.py",
                "if self._clock() - order.checked_at > FACTS_FRESH:",
                "if self._clock() < order.checked_at:",
            ),
        ),
        caught_by=tests("activities/test_payments.py", "test_old_facts_send_nothing"),
    ),
    Mutant(
        name="one open run for an order",
        promise="P1",
        edits=(
            Edit(
                "starters/launch.py",
                "WorkflowIDConflictPolicy.FAIL,",
                "WorkflowIDConflictPolicy.TERMINATE_EXISTING,",
            ),
        ),
        caught_by=tests(
            "faults/test_operations.py", "test_the_same_start_twice_at_once_is_begun_once"
        ),
    ),
    Mutant(
        name="a cancel loses no refund that is on its way",
        promise="P1",
        edits=(
            Edit(
                "workflows/refund.py",
                "                self._take_cancel(state)\n",
                "                story.cancel()\n                self._take_cancel(state)\n",
            ),
        ),
        caught_by=(
            tests(
                "faults/test_refund_stopped.py",
                "test_stopped_while_the_provider_works[cancel]",
            )
            + tests(
                "workflows/test_withdrawal.py",
                "test_too_late_while_the_refund_is_under_way[cancel]",
            )
        ),
    ),
    Mutant(
        name="a worker pays for its own environment alone",
        promise="P1",
        edits=(
            Edit("activities/failures.py", "    if asked != served:\n", "    if not served:\n"),
        ),
        caught_by=tests(
            "workers/test_interceptor.py", "test_work_of_another_environment_is_not_done"
        ),
    ),
)
