"""An approval is of one proposal, and of no other (P2)."""

from tests.mutants.mutant import Edit, Mutant, tests

_RUN_ASKS_WHICH = Edit(
    "domain/decisions.py",
    "    if claims.proposal != proposal.proposal_id:\n",
    "    if not claims.proposal:\n",
)
_DIRECTORY_ASKS_WHICH = Edit(
    "activities/decisions.py",
    "    if check.proposal is None or claims.proposal != check.proposal.proposal_id:\n",
    "    if check.proposal is None:\n",
)
_RE_CHECK_ASKS_WHICH = Edit(
    "activities/decisions.py",
    "    if not isinstance(claims, DecisionClaims) or claims.proposal != proposal.proposal_id:\n",
    "    if not isinstance(claims, DecisionClaims):\n",
)

PROPOSALS = (
    Mutant(
        name="a decision names its proposal: asked by the run",
        promise="P2",
        edits=(_RUN_ASKS_WHICH,),
        caught_by=tests("domain/test_decisions.py", "test_a_decision_is_about_one_proposal"),
    ),
    Mutant(
        name="a decision names its proposal: asked with the signature",
        promise="P2",
        edits=(_DIRECTORY_ASKS_WHICH,),
        caught_by=tests(
            "activities/test_decisions.py",
            "test_a_decision_of_one_who_may_not_is_refused[other proposal]",
        ),
    ),
    Mutant(
        name="a decision names its proposal: asked again before the money",
        promise="P2",
        edits=(_RE_CHECK_ASKS_WHICH,),
        caught_by=tests(
            "activities/test_cases.py", "test_what_is_no_approval_of_this_proposal_does_not_count"
        ),
    ),
    Mutant(
        name="a decision names its proposal: asked at all",
        promise="P2",
        edits=(_RUN_ASKS_WHICH, _DIRECTORY_ASKS_WHICH, _RE_CHECK_ASKS_WHICH),
        caught_by=(
            tests(
                "workflows/test_changes.py",
                "test_refunded_in_part_by_hand_asks_again_for_the_rest",
            )
            + tests(
                "workflows/test_decisions.py",
                "test_a_decision_before_the_first_task_is_kept_and_approves_nothing_unseen",
            )
        ),
    ),
    Mutant(
        name="a proposal's id binds the amount",
        promise="P2",
        edits=(
            Edit("domain/policy.py", "        proposal.amount.amount_minor,\n        ", "        "),
        ),
        caught_by=tests("domain/test_propose.py", "test_a_proposal_id_binds_what_is_proposed"),
    ),
    Mutant(
        name="no approval is carried over to a new round",
        promise="P2",
        edits=(Edit("workflows/state.py", "        self.approvals.clear()\n", ""),),
        caught_by=tests(
            "workflows/test_changes.py",
            "test_refunded_in_part_by_hand_asks_again_for_the_rest",
        ),
    ),
)
