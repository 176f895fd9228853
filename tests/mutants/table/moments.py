"""When it counts: signed time, deadline, withdrawal (P2)."""

from tests.mutants.mutant import Edit, Mutant, tests

MOMENTS = (
    Mutant(
        name="a decision counts by its signed time, not by when it arrives",
        promise="P2",
        edits=(
            Edit(
                "domain/decisions.py",
                "    if claims.iat > deadline + policy.skew:\n",
                "    if now > deadline + policy.skew:\n",
            ),
        ),
        caught_by=(
            tests("domain/test_decisions.py", "test_the_signed_time_decides")
            + tests(
                "workflows/test_time.py",
                "test_signed_time_decides_about_the_deadline[before-the-deadline]",
            )
        ),
    ),
    Mutant(
        name="no decision is signed in the future",
        promise="P2",
        edits=(
            Edit(
                "domain/decisions.py",
                "    if claims.iat > now + policy.skew:\n        return Refusal.FROM_THE_FUTURE\n",
                "",
            ),
        ),
        caught_by=tests("domain/test_decisions.py", "test_the_signed_time_decides"),
    ),
    Mutant(
        name="the deadline stays where an approval is lost",
        promise="P2",
        edits=(
            Edit(
                "workflows/refund.py",
                "        state.lose_approvals(lost.standings)\n",
                "        state.lose_approvals(lost.standings)\n"
                "        if state.case is not None:\n"
                "            state.deadline = workflow.now() + state.case.policy.time_to_decide\n",
            ),
        ),
        caught_by=tests(
            "workflows/test_changes.py",
            "test_an_approver_who_lost_the_right_sends_the_run_back_to_waiting",
        ),
    ),
    Mutant(
        name="a withdrawal ends what is waited for",
        promise="P2",
        edits=(
            Edit(
                "workflows/refund.py",
                "lambda: task.done() or state.withdrawal is not None)",
                "lambda: task.done())",
            ),
        ),
        caught_by=tests("workflows/test_withdrawal.py", "test_withdrawn_while_the_model_is_asked"),
    ),
    Mutant(
        name="a withdrawal wins over an approval that came with it",
        promise="P2",
        edits=(
            Edit(
                "workflows/refund.py",
                "        # A withdrawal that has arrived is judged before the money moves.\n"
                "        await workflow.wait_condition(lambda: self._clerk.idle)\n"
                "        if state.withdrawal is not None:\n"
                "            return _withdrawn(state.withdrawal)\n",
                "",
            ),
        ),
        caught_by=tests(
            "workflows/test_withdrawal.py",
            "test_a_withdrawal_that_came_before_the_money_is_judged_before_it",
        ),
    ),
    Mutant(
        name="what the customer was told is not undone",
        promise="P2",
        edits=(
            Edit("domain/recheck.py", "    if case.told:\n", "    if not case.policy.version:\n"),
            Edit("domain/policy.py", "    if case.told:\n", "    if not case.policy.version:\n"),
        ),
        caught_by=tests("domain/test_recheck.py", "test_what_the_customer_was_told_is_not_undone"),
    ),
)
