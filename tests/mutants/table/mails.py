"""One mail for each purpose, and `refunded` only after the provider says so (P3)."""

from tests.mutants.mutant import Edit, Mutant, tests

MAILS = (
    Mutant(
        name="a mail is written into the ledger before it is sent",
        promise="P3",
        edits=(
            Edit(
                "activities/mail.py",
                "entry = await self._ledger.claim("
                "order.key, digest, prepared.model_dump_json(), ATTEMPT)",
                "entry = Entry(order.key, EntryState.CLAIMED, prepared.model_dump_json(), None, "
                "digest, None, ATTEMPT)",
            ),
        ),
        caught_by=tests("activities/test_mail.py", "test_a_mail_is_sent_once_for_its_key[sqlite]"),
    ),
    Mutant(
        name="a mail in one attempt's hands is sent by no other",
        promise="P3",
        edits=(
            Edit(
                "activities/ledger.py",
                "_entries.c.result.is_(None), _entries.c.held_until <= now)",
                "_entries.c.result.is_(None))",
            ),
        ),
        caught_by=tests(
            "activities/test_ledger.py", "test_of_many_claimants_one_gets_the_key[sqlite]"
        ),
    ),
    Mutant(
        name="a repeat is the message that was written first",
        promise="P3",
        edits=(
            Edit(
                "activities/mail.py",
                "                return await self._send(entry)\n",
                "                return await self._send(\n"
                "                    replace(entry, prepared=prepared.model_dump_json())\n"
                "                )\n",
            ),
            Edit(
                "activities/mail.py",
                "import hashlib\n",
                "import hashlib\nfrom dataclasses import replace\n",
            ),
        ),
        caught_by=tests(
            "activities/test_mail.py", "test_a_repeat_is_the_message_that_was_written_first[sqlite]"
        ),
    ),
    Mutant(
        name="a message carries its key, for a server that knows keys",
        promise="P3",
        edits=(Edit("activities/mail.py", "        message[KEY_HEADER] = order.key\n", ""),),
        caught_by=tests(
            "activities/test_mail.py", "test_a_mail_whose_answer_was_lost_arrives_once[sqlite]"
        ),
    ),
    Mutant(
        name="a later for one recipient sends to nobody",
        promise="P3",
        edits=(
            Edit(
                "activities/smtp.py",
                "            if error.code < 500:\n",
                "            if not error.code:\n",
            ),
        ),
        caught_by=tests(
            "activities/test_mail.py", "test_a_later_for_one_recipient_sends_to_nobody[sqlite]"
        ),
    ),
    Mutant(
        name="confirmed when it has succeeded, not while it is pending",
        promise="P3",
        edits=(
            Edit(
                "workflows/paying.py",
                "        case RefundStatus.SUCCEEDED:\n",
                "        case RefundStatus.SUCCEEDED | RefundStatus.PENDING | "
                "RefundStatus.REQUIRES_ACTION:\n",
            ),
        ),
        caught_by=(
            tests(
                "workflows/test_outcomes.py",
                "test_a_pending_refund_is_confirmed_only_when_it_has_succeeded[failed]",
            )
            + tests(
                "faults/test_refund.py",
                "test_days_without_a_word_end_with_the_providers_last[requires_action-then-failed]",
            )
        ),
    ),
    Mutant(
        name="confirmed after it was read back, not at once",
        promise="P3",
        edits=(
            Edit(
                "workflows/refund.py",
                "                step = await verify(state, step.refund)\n            else:\n",
                "                state.refund = step.refund\n"
                "                step = Close(\n"
                "                    outcome=Outcome.REFUNDED, reason=Reason.VERIFIED, "
                'explanation=""\n'
                "                )\n            else:\n",
            ),
        ),
        caught_by=(
            tests(
                "workflows/test_outcomes.py",
                "test_a_refund_that_the_provider_fails_is_said_to_have_failed[failed]",
            )
            + tests(
                "workflows/test_unknown.py",
                "test_a_provider_that_says_ok_and_does_nothing_is_not_believed",
            )
        ),
    ),
    Mutant(
        name="the order service is told of verified refunds alone",
        promise="P3",
        edits=(
            Edit(
                "workflows/orders.py",
                "    if close.outcome is not Outcome.REFUNDED or state.refund is None:\n",
                "    if state.refund is None or not Outcome.REFUNDED:\n",
            ),
        ),
        caught_by=tests(
            "faults/test_order_service.py", "test_only_a_verified_refund_is_told[failed]"
        ),
    ),
    Mutant(
        name="a customer hears each thing once, over all retries",
        promise="P3",
        edits=(
            Edit("workflows/notices.py", "resumed.retry and purpose in TO_STAFF", "resumed.retry"),
        ),
        caught_by=tests(
            "starters/test_retry.py", "test_a_retry_that_fails_again_tells_operations_again"
        ),
    ),
    Mutant(
        name="one correction and one alert for each refund, over all sweeps",
        promise="P3",
        edits=(
            Edit(
                "workflows/sweep.py",
                "failed.order_id, failed.request_id).scope\n",
                "failed.order_id, failed.request_id).scope + workflow.info().run_id\n",
            ),
        ),
        caught_by=tests(
            "workflows/test_sweep.py",
            "test_a_refund_that_failed_later_is_corrected_once[failed]",
        ),
    ),
    Mutant(
        name="an open run tells of its refund itself",
        promise="P3",
        edits=(
            Edit(
                "activities/sweep.py", "is Duty.NOTHING or await _is_open(key):", "is Duty.NOTHING:"
            ),
        ),
        caught_by=tests("workflows/test_sweep.py", "test_an_open_run_tells_it_itself"),
    ),
    Mutant(
        name="no customer is told what nobody knows",
        promise="P3",
        edits=(
            Edit(
                "domain/sweep.py",
                "    return Duty.NOTHING if alerted else Duty.ALERT\n",
                "    return Duty.NOTHING if alerted else Duty.CORRECT\n",
            ),
        ),
        caught_by=tests("domain/test_sweep.py", "test_what_is_left_to_do"),
    ),
)
