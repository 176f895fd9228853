"""Who says it: signatures and keys (P2)."""

from tests.mutants.mutant import Edit, Mutant, tests

SIGNATURES = (
    Mutant(
        name="the signature is checked",
        promise="P2",
        edits=(
            Edit(
                "activities/decisions.py",
                "        jwt.PyJWS().decode(token, public, algorithms=[ALGORITHM])\n",
                "",
            ),
        ),
        caught_by=tests(
            "activities/test_decisions.py",
            "test_a_forged_statement_is_refused",
            "test_a_stranger_with_a_key_of_their_own_is_refused",
        ),
    ),
    Mutant(
        name="a key signs for its own person",
        promise="P2",
        edits=(
            Edit(
                "activities/decisions.py",
                "public is None or not _signs_for(key, person):",
                "public is None:",
            ),
        ),
        caught_by=tests(
            "activities/test_decisions.py", "test_a_key_that_is_not_for_the_signer_is_unknown"
        ),
    ),
    Mutant(
        name="a key counts within its time when a message arrives, not when it says it was signed",
        promise="P2",
        edits=(
            Edit(
                "activities/decisions.py",
                "(received_at is not None and not key.valid_at(received_at))",
                "received_at == key.valid_until",
            ),
        ),
        caught_by=tests("activities/test_decisions.py", "test_a_key_counts_within_its_time"),
    ),
    Mutant(
        name="a key that was withdrawn takes its approval along",
        promise="P2",
        edits=(
            Edit(
                "activities/decisions.py",
                "    refusal = refuse_signature(token, StatementKind.DECISION, person, "
                "received_at=None)\n",
                "    refusal = None\n",
            ),
        ),
        caught_by=tests(
            "activities/test_cases.py", "test_an_approval_is_held_to_the_rights_of_now"
        ),
    ),
    Mutant(
        name="a request is signed by whom it names",
        promise="P2",
        edits=(
            Edit(
                "domain/policy.py",
                "    if case.requester_refusal is not None:\n",
                "    if not case.policy.version:\n",
            ),
        ),
        caught_by=tests(
            "workflows/test_outcomes.py",
            "test_a_request_that_nobody_signed_reaches_no_customer",
        ),
    ),
    Mutant(
        name="a requester's signature covers amount and letter",
        promise="P2",
        edits=(
            Edit(
                "activities/decisions.py",
                "isinstance(claims, RequestClaims) and claims.digest == request_digest(request)",
                "isinstance(claims, RequestClaims)",
            ),
        ),
        caught_by=tests(
            "activities/test_cases.py",
            "test_a_request_that_was_not_signed_like_this_is_refused[amount]",
        ),
    ),
)
