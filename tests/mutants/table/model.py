"""The model never decides alone (P5)."""

from tests.mutants.mutant import Edit, Mutant, tests

MODEL = (
    Mutant(
        name="the policy decides who must approve, not the model",
        promise="P5",
        edits=(
            Edit(
                "domain/policy.py",
                "    why = []\n",
                "    if assessment and assessment.recommendation is Recommendation.REFUND:\n"
                "        return ()\n"
                "    why = []\n",
            ),
        ),
        caught_by=tests(
            "domain/test_propose.py", "test_tiers_look_at_this_amount_and_earlier_refunds"
        ),
    ),
    Mutant(
        name="a refusal of the model refuses nobody",
        promise="P5",
        edits=(
            Edit(
                "domain/policy.py",
                "    taken = claim.amount.with_minor(payment.taken_minor)\n",
                "    if assessment and assessment.recommendation is Recommendation.REFUSE:\n"
                "        return _declined(Reason.OUTSIDE_RETURN_WINDOW, assessment.summary)\n"
                "    taken = claim.amount.with_minor(payment.taken_minor)\n",
            ),
        ),
        caught_by=tests("domain/test_propose.py", "test_a_doubt_of_the_model_adds_a_person"),
    ),
    Mutant(
        name="a doubt of the model asks a person",
        promise="P5",
        edits=(
            Edit(
                "domain/policy.py",
                "    elif assessment.recommendation is not Recommendation.REFUND:\n",
                "    elif not assessment.recommendation:\n",
            ),
        ),
        caught_by=tests("domain/test_propose.py", "test_a_doubt_of_the_model_adds_a_person"),
    ),
    Mutant(
        name="the model reads the run's order alone",
        promise="P5",
        edits=(Edit("domain/agent.py", "return bool(named == order_id)", "return bool(named)"),),
        caught_by=tests(
            "activities/test_model.py", "test_a_call_that_names_another_order_reads_nothing"
        ),
    ),
    Mutant(
        name="three bad answers and a person decides",
        promise="P5",
        edits=(
            Edit(
                "workflows/investigation.py",
                "        if bad_answers == BAD_ANSWERS_LIMIT:\n            break\n",
                "",
            ),
        ),
        caught_by=tests(
            "faults/test_model.py",
            "test_three_bad_answers_in_a_row_and_a_person_decides[refusal]",
        ),
    ),
    Mutant(
        name="a model that comes to no end is stopped",
        promise="P5",
        edits=(
            Edit(
                "workflows/investigation.py",
                "range(1, policy.max_model_turns + 1)",
                "range(1, policy.max_model_turns + 5)",
            ),
        ),
        caught_by=tests(
            "faults/test_model.py",
            "test_a_model_that_comes_to_no_end_is_stopped[the-same-tool-for-ever]",
        ),
    ),
    Mutant(
        name="a model that is down is waited for half an hour",
        promise="P5",
        edits=(
            Edit(
                "workflows/investigation.py",
                "give_up_at - workflow.now())",
                "timedelta(days=1))",
            ),
        ),
        caught_by=tests(
            "faults/test_model.py",
            "test_a_model_that_is_not_to_be_had_costs_half_an_hour[down-for-a-day]",
        ),
    ),
    Mutant(
        name="an answer of the model is paid for once",
        promise="P5",
        edits=(
            Edit(
                "activities/model.py", "        if kept is not None:\n", "        if kept == '':\n"
            ),
        ),
        caught_by=tests(
            "activities/test_model_contract.py", "test_an_answer_is_paid_for_once[openai]"
        ),
    ),
)
