"""Worker, schedule and doctor (P4, and P2 and P3 where the doctor looks after them)."""

from tests.mutants.mutant import Edit, Mutant, tests

SET_UP = (
    Mutant(
        name="a decision is taken up soon after the worker that held its run was killed",
        promise="P4",
        # The SDK then waits ten seconds.
        edits=(
            Edit(
                "workers/wiring.py",
                '        "sticky_queue_schedule_to_start_timeout": STICKY_TIMEOUT,\n',
                "",
            ),
        ),
        caught_by=tests("faults/test_killed.py", "test_a_decision_is_taken_up_soon_after_a_kill"),
    ),
    Mutant(
        name="a worker that is told to end waits for the provider's answer",
        promise="P4",
        edits=(
            Edit(
                "workers/wiring.py",
                '        "graceful_shutdown_timeout": GRACEFUL_SHUTDOWN,\n',
                "",
            ),
        ),
        caught_by=tests("faults/test_killed.py", "test_told_to_end_while_the_provider_works"),
    ),
    Mutant(
        name="the schedule is there, or the doctor says so",
        promise="P4",
        edits=(
            Edit(
                "starters/doctor.py",
                '    if found is None:\n        return Finding("sweep", False,',
                '    if found is None:\n        return Finding("sweep", True,',
            ),
        ),
        caught_by=tests("starters/test_schedule.py", "test_the_doctor_makes_the_schedule"),
    ),
    Mutant(
        name="a schedule that somebody changed is found",
        promise="P4",
        edits=(
            Edit(
                "starters/schedule.py",
                "what, value in should_be.items() if is_so[what] != value)",
                "what, value in should_be.items() if value is None)",
            ),
        ),
        caught_by=tests(
            "starters/test_schedule.py", "test_a_changed_schedule_is_brought_up_to_date[rhythm]"
        ),
    ),
    Mutant(
        name="nobody's pause is lifted",
        promise="P4",
        edits=(
            Edit(
                "starters/schedule.py",
                "        schedule.state = found.description.schedule.state\n",
                "",
            ),
        ),
        caught_by=tests("starters/test_schedule.py", "test_a_pause_is_found_and_kept"),
    ),
    Mutant(
        name="sweeps of the schedule do not overlap",
        promise="P4",
        edits=(
            Edit(
                "starters/schedule.py",
                "overlap=ScheduleOverlapPolicy.SKIP",
                "overlap=ScheduleOverlapPolicy.ALLOW_ALL",
            ),
        ),
        caught_by=tests("starters/test_schedule.py", "test_sweeps_do_not_overlap"),
    ),
    Mutant(
        name="one late sweep after an outage",
        promise="P4",
        edits=(
            Edit("starters/schedule.py", "_CATCH_UP = EVERY", "_CATCH_UP = timedelta(days=365)"),
        ),
        caught_by=tests(
            "starters/test_schedule.py", "test_one_late_sweep_does_the_work_of_all_that_were_missed"
        ),
    ),
    Mutant(
        name="a sweep that failed is found by the doctor",
        promise="P4",
        edits=(
            Edit(
                "starters/schedule.py",
                "    if status not in _BAD_ENDS:\n",
                "    if status:\n",
            ),
        ),
        caught_by=tests("starters/test_schedule.py", "test_a_sweep_that_failed_is_found"),
    ),
    Mutant(
        name="a queue that nobody polls is found by the doctor",
        promise="P4",
        edits=(Edit("starters/pollers.py", "    if not lacks:\n", "    if polled:\n"),),
        caught_by=tests("starters/test_doctor.py", "test_a_queue_that_nobody_polls_is_found"),
    ),
    Mutant(
        name="a clock that is off is found by the doctor",
        promise="P4",
        edits=(Edit("starters/doctor.py", "        off <= _CLOCK_SECONDS,\n", "        True,\n"),),
        caught_by=tests("starters/test_doctor.py", "test_a_clock_that_is_off_is_found"),
    ),
    Mutant(
        name="two hosts with a ledger each are found by the doctor",
        promise="P3",
        edits=(Edit("starters/doctor.py", "        not shared_file,\n", "        True,\n"),),
        caught_by=tests("starters/test_doctor.py", "test_a_shared_sqlite_ledger_is_found"),
    ),
    Mutant(
        name="a key that others can read is found by the doctor",
        promise="P2",
        edits=(Edit("starters/doctor.py", "st_mode) & 0o077:", "st_mode) & 0o000:"),),
        caught_by=tests("starters/test_doctor.py", "test_keys_are_looked_at[open-others can]"),
    ),
    Mutant(
        name="what was approved in a run that was ended is waited for",
        promise="P4",
        edits=(Edit("starters/start.py", "runs.last_words(last)", "runs.ask(last.handle)"),),
        caught_by=tests(
            "starters/test_start_again.py",
            "test_nothing_starts_until_a_worker_tells_what_was_approved",
        ),
    ),
    Mutant(
        name="many workers may open a new ledger",
        promise="P3",
        edits=(
            Edit(
                "activities/ledger.py",
                "    connection.run_async(_switch_to_wal)\n",
                '    cursor.execute("PRAGMA journal_mode = WAL")\n',
            ),
        ),
        caught_by=tests(
            "activities/test_ledger.py",
            "test_a_new_file_that_another_worker_has_locked_is_waited_for",
        ),
    ),
    Mutant(
        name="closed runs are kept, or the doctor says so",
        promise="P4",
        edits=(
            Edit(
                "starters/doctor.py",
                "        kept >= timedelta(days=RETENTION_DAYS),\n",
                "        True,\n",
            ),
        ),
        caught_by=tests("starters/test_doctor.py", "test_a_bare_namespace_needs_mending"),
    ),
    Mutant(
        name="search attributes are registered, or the doctor says so",
        promise="P4",
        edits=(Edit("starters/doctor.py", "        not missing,\n", "        True,\n"),),
        caught_by=tests("starters/test_doctor.py", "test_a_bare_namespace_needs_mending"),
    ),
    Mutant(
        name="what the doctor finds is its exit code",
        promise="P4",
        edits=(Edit("starters/doctor.py", "    if wrong:\n", "    if not findings:\n"),),
        caught_by=tests("starters/test_doctor.py", "test_a_queue_that_nobody_polls_is_found"),
    ),
    Mutant(
        name="a query moves no run ahead of its workflow tasks",
        promise="P6",
        edits=(
            Edit(
                "workers/in_step.py",
                "if self._is_ahead(act) and ",
                "if not act.run_id and ",
            ),
        ),
        caught_by=tests(
            "workers/test_in_step.py",
            "test_a_query_that_comes_before_a_workflow_task_is_refused",
        ),
    ),
    Mutant(
        name="what a run was ended with is told",
        promise="P4",
        edits=(
            Edit(
                "workers/in_step.py",
                "described.status is WorkflowExecutionStatus.RUNNING",
                "described.run_id == run_id",
            ),
        ),
        caught_by=tests("workers/test_in_step.py", "test_what_a_run_was_ended_with_can_be_shown"),
    ),
    Mutant(
        name="a run that waits goes along with a deploy",
        promise="P6",
        edits=(
            Edit(
                "workers/wiring.py",
                "=VersioningBehavior.AUTO_UPGRADE",
                "=VersioningBehavior.PINNED",
            ),
        ),
        caught_by=tests(
            "replay/test_side_by_side.py",
            "test_a_run_that_waits_is_finished_by_the_release_that_comes",
        ),
    ),
)
