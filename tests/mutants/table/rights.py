"""Who may: rights, limits and pairs (P2)."""

from tests.mutants.mutant import Edit, Mutant, tests

RIGHTS = (
    Mutant(
        name="nobody decides on a request of their own",
        promise="P2",
        edits=(
            Edit(
                "domain/people.py",
                "    if same_person(person.address, requester):\n",
                "    if not person.address:\n",
            ),
        ),
        caught_by=tests("domain/test_people.py", "test_who_may_decide"),
    ),
    Mutant(
        name="nobody decides on a refund to themselves",
        promise="P2",
        edits=(
            Edit(
                "domain/people.py",
                "    if same_person(person.address, customer):\n",
                "    if not person.address:\n",
            ),
        ),
        caught_by=tests("domain/test_people.py", "test_who_may_decide"),
    ),
    Mutant(
        name="another spelling is no other person",
        promise="P2",
        edits=(Edit("domain/people.py", "_mailbox(one) == _mailbox(other)", "one == other"),),
        caught_by=tests("domain/test_people.py", "test_spelling_makes_no_other_person"),
    ),
    Mutant(
        name="a limit covers earlier refunds too",
        promise="P2",
        edits=(Edit("domain/people.py", "proposal.limit_needed) else", "proposal.amount) else"),),
        caught_by=tests("domain/test_people.py", "test_a_limit_covers_earlier_refunds_too"),
    ),
    Mutant(
        name="two approvals are of two people",
        promise="P2",
        edits=(
            Edit(
                "domain/approvals.py",
                "    if any(same_person(person.address, other.person.address) "
                "for other in approvals):\n",
                "    if person.address in approvals:\n",
            ),
            Edit(
                "workflows/clerk.py",
                "        if any(same_person(claims.iss, a.person.address) "
                "for a in state.approvals):\n",
                "        if claims.iss in state.approvals:\n",
            ),
        ),
        caught_by=tests("domain/test_approvals.py", "test_which_second_approval_counts"),
    ),
    Mutant(
        name="a finance director is one of two",
        promise="P2",
        edits=(
            Edit(
                "domain/approvals.py",
                "    return not proposal.director_needed or any("
                "approval.director for approval in approvals)\n",
                "    return True\n",
            ),
        ),
        caught_by=tests("domain/test_approvals.py", "test_which_second_approval_counts"),
    ),
    Mutant(
        name="a director's own limit covers the total: the role alone is not enough",
        promise="P2",
        edits=(
            Edit(
                "domain/approvals.py",
                "Role.FINANCE_DIRECTOR in person.roles and covers(person.limits, proposal.total)",
                "Role.FINANCE_DIRECTOR in person.roles",
            ),
        ),
        caught_by=tests(
            "domain/test_approvals.py", "test_the_directors_own_limit_covers_the_total"
        ),
    ),
    Mutant(
        name="a director is one by role: the limit alone is not enough",
        promise="P2",
        edits=(
            Edit(
                "domain/approvals.py",
                "Role.FINANCE_DIRECTOR in person.roles and covers(person.limits, proposal.total)",
                "covers(person.limits, proposal.total)",
            ),
        ),
        caught_by=tests(
            "domain/test_approvals.py", "test_the_directors_own_limit_covers_the_total"
        ),
    ),
    Mutant(
        name="rights are read again before the money: looked at by the run",
        promise="P2",
        edits=(
            Edit(
                "domain/recheck.py",
                "    if not stand(proposal, case.standings):\n",
                "    if not case.policy.version:\n",
            ),
        ),
        caught_by=tests(
            "domain/test_recheck.py", "test_a_lost_right_means_waiting_again_and_no_round"
        ),
    ),
    Mutant(
        name="rights are read again before the money: asked of the directory",
        promise="P2",
        edits=(
            Edit(
                "activities/decisions.py",
                "refusal or may_decide(person, claims.verdict, proposal, requester, customer)",
                "refusal",
            ),
        ),
        caught_by=tests(
            "activities/test_cases.py", "test_an_approval_is_held_to_the_rights_of_now"
        ),
    ),
)
