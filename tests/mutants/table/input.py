"""Code may change (P6), and bad input ends in a clear message (P7)."""

from tests.mutants.mutant import Edit, Mutant, tests

INPUT = (
    Mutant(
        name="a run does the same when it is replayed",
        promise="P6",
        edits=(
            Edit(
                "workflows/refund.py",
                "        self._postbox.send(state, notices.approval_request(state))\n",
                "        if not workflow.unsafe.is_replaying():\n"
                "            self._postbox.send(state, notices.approval_request(state))\n",
            ),
        ),
        caught_by=tests(
            "workflows/test_story.py", "test_nothing_is_paid_before_a_person_has_decided"
        ),
    ),
    Mutant(
        name="a change has an id of its own",
        promise="P6",
        edits=(
            Edit(
                "domain/names.py",
                'PATCH_TELL_ORDER_SERVICE = "tell-order-service"',
                'PATCH_TELL_ORDER_SERVICE = "who-decides"',
            ),
        ),
        caught_by=(
            tests(
                "replay/test_life.py",
                "test_a_run_that_waits_takes_the_old_path_before_the_wait_and_the_new_one_after_it",
            )
            + tests("test_patch_lint.py", "test_the_workflows_of_this_code_are_well")
        ),
    ),
    Mutant(
        name="a handler that never raises",
        promise="P7",
        edits=(
            Edit(
                "workflows/refund.py",
                "        self._clerk.receive(signal, arguments)\n",
                "        [_] = arguments\n        self._clerk.receive(signal, arguments)\n",
            ),
        ),
        caught_by=tests(
            "workflows/test_decisions.py",
            "test_garbage_is_answered_and_the_run_stays_decidable",
        ),
    ),
    Mutant(
        name="a message without an argument, or with two, is answered",
        promise="P7",
        edits=(
            Edit(
                "workflows/clerk.py",
                "    if len(message.arguments) != 1:\n"
                '        raise StatementError(f"one argument is needed, '
                '{len(message.arguments)} came")\n',
                "",
            ),
        ),
        caught_by=tests(
            "workflows/test_decisions.py",
            "test_garbage_is_answered_and_the_run_stays_decidable",
        ),
    ),
    Mutant(
        name="a run that was started with nonsense fails with a message",
        promise="P7",
        edits=(
            Edit(
                "workflows/refund.py",
                "    except ValidationError as error:\n",
                "    except ZeroDivisionError as error:\n",
            ),
        ),
        caught_by=tests(
            "workflows/test_recovery.py",
            "test_a_run_started_with_bad_input_fails_with_a_clear_message[null]",
        ),
    ),
    Mutant(
        name="a made-up round is refused",
        promise="P7",
        edits=(
            Edit(
                "domain/request.py",
                "    if proposal.round > _LAST_ROUND:\n",
                "    if not proposal:\n",
            ),
        ),
        caught_by=tests("domain/test_take_up.py", "test_a_made_up_round_is_refused"),
    ),
    Mutant(
        name="an order is refunded under one spelling",
        promise="P7",
        edits=(
            Edit(
                "domain/policy.py",
                "    if order.id != request.order_id:\n",
                "    if not order.id:\n",
            ),
        ),
        caught_by=tests(
            "domain/test_take_up.py", "test_a_request_that_does_not_hold_ends_with_its_reason"
        ),
    ),
)
