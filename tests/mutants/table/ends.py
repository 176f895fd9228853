"""Nothing accepted is lost, no end is silent (P4)."""

from tests.mutants.mutant import Edit, Mutant, tests

ENDS = (
    Mutant(
        name="a decision that came early is kept",
        promise="P4",
        edits=(
            Edit(
                "workflows/clerk.py",
                "            self._keep(message, claims, state)\n",
                "            self._refuse_claims(state, claims, Refusal.OTHER_PROPOSAL)\n",
            ),
        ),
        caught_by=tests(
            "workflows/test_decisions.py",
            "test_a_decision_before_the_first_task_is_kept_and_approves_nothing_unseen",
        ),
    ),
    Mutant(
        name="what has arrived is judged before the request expires",
        promise="P4",
        edits=(
            Edit(
                "workflows/waiting.py",
                "    await workflow.wait_condition(lambda: clerk.idle)\n"
                "    if state.decided:\n        return None\n",
                "",
            ),
        ),
        caught_by=tests(
            "workflows/test_outages.py",
            "test_a_worker_that_is_down_over_a_moment_loses_nothing[grace]",
        ),
    ),
    Mutant(
        name="the grace after the deadline",
        promise="P4",
        edits=(
            Edit("workflows/waiting.py", "closing = deadline + policy.grace", "closing = deadline"),
        ),
        caught_by=tests("workflows/test_time.py", "test_the_deadline_passes_with_nobody_there"),
    ),
    Mutant(
        name="what nobody could judge gets its answer at the end",
        promise="P4",
        edits=(Edit("workflows/refund.py", "        self._clerk.refuse_rest(state)\n", ""),),
        caught_by=tests(
            "workflows/test_withdrawal.py",
            "test_a_directory_that_is_down_keeps_no_ended_run_open",
        ),
    ),
    Mutant(
        name="no end is silent",
        promise="P4",
        edits=(
            Edit(
                "workflows/notices.py",
                "in _ALERT_OPERATIONS or not mails:",
                "in _ALERT_OPERATIONS:",
            ),
        ),
        caught_by=tests("workflows/test_withdrawal.py", "test_cancelled_before_the_first_task"),
    ),
    Mutant(
        name="what needs a person is told to operations",
        promise="P4",
        edits=(
            Edit(
                "workflows/notices.py",
                "(Outcome.REFUND_FAILED, Outcome.NEEDS_HUMAN)",
                "(Outcome.REFUND_FAILED,)",
            ),
        ),
        caught_by=tests(
            "workflows/test_recovery.py",
            "test_each_reason_is_told_also_by_a_later_run_of_the_request",
        ),
    ),
    Mutant(
        name="each reason for a person has a mail of its own",
        promise="P4",
        edits=(Edit("workflows/notices.py", 'f"alert.{close.reason.value}"', '"alert"'),),
        caught_by=tests(
            "workflows/test_recovery.py",
            "test_each_reason_is_told_also_by_a_later_run_of_the_request",
        ),
    ),
    Mutant(
        name="a mail that did not arrive is told to operations",
        promise="P4",
        edits=(
            Edit(
                "workflows/postbox.py",
                "        if missed and order.purpose",
                "        if not what and order.purpose",
            ),
        ),
        caught_by=tests(
            "faults/test_mail.py",
            "test_an_address_that_is_refused_is_told_to_operations",
            "test_one_refused_approver_of_several_is_told_to_operations",
        ),
    ),
    Mutant(
        name="an order service that was not told is told to operations",
        promise="P4",
        edits=(
            Edit(
                "workflows/orders.py",
                '    postbox.send(state, notices.alert(state, "order_not_told", words))\n',
                "    state.changed = words\n",
            ),
        ),
        caught_by=tests(
            "faults/test_order_service.py",
            "test_an_order_service_that_is_down_for_a_day_is_operations_to_mend",
            "test_a_definite_no_is_told_to_operations_at_once",
        ),
    ),
    Mutant(
        name="the customer's mail does not wait for the order service",
        promise="P4",
        edits=(
            Edit(
                "workflows/refund.py",
                "tell_order_service(state, self._postbox, close))\n",
                "tell_order_service(state, self._postbox, close))\n        await told\n",
            ),
        ),
        caught_by=tests(
            "faults/test_order_service.py",
            "test_an_order_service_that_is_down_for_a_day_is_operations_to_mend",
        ),
    ),
    Mutant(
        name="a person is told where nobody may approve",
        promise="P4",
        edits=(
            Edit(
                "workflows/waiting.py",
                "    if not state.case.to_ask(state.proposal):\n",
                "    if not policy.version:\n",
            ),
        ),
        caught_by=tests(
            "workflows/test_two_approvers.py",
            "test_where_no_pair_can_be_made_a_person_hears_at_once",
        ),
    ),
    Mutant(
        name="at most three rounds",
        promise="P4",
        edits=(
            Edit(
                "workflows/refund.py",
                "        if state.rounds >= state.case.policy.max_rounds:\n",
                "        if not state.rounds:\n",
            ),
        ),
        caught_by=tests(
            "workflows/test_changes.py",
            "test_a_world_that_changes_every_round_ends_with_a_person",
        ),
    ),
    Mutant(
        name="a sweep that could not see all is told to operations",
        promise="P4",
        edits=(
            Edit(
                "workflows/sweep.py",
                "        if report.outcome is not SweepOutcome.COMPLETE:\n",
                "        if not report.outcome:\n",
            ),
        ),
        caught_by=tests(
            "workflows/test_sweep_troubles.py",
            "test_a_provider_that_is_down_is_left_to_the_next_sweep",
        ),
    ),
)
