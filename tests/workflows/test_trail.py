"""What an auditor asks, the trail answers, a year later and without any other system (issue 4)."""

from domain.trail import Entry, Refusal, RunStatus
from tests.signing import GRACE, MARIA, SAM, TOM
from tests.world import World


def rows(status: RunStatus, what: str) -> list[Entry]:
    """The rows of one kind."""
    return [entry for entry in status.trail if entry.what == what]


async def test_an_auditor_finds_every_answer_in_the_trail(world: World) -> None:
    """P4: who asked, what model and rules said, who was asked, who decided on what, what was paid.

    It is what `refund show` prints, and whole in its `--json`.
    """
    run = await world.start("8892")
    await run.approve(by=TOM)
    await run.approve(by=MARIA, comment="I saw the photos.")
    await run.approve(by=GRACE, comment="")
    ended = await run.result()
    assert ended.refund is not None

    [asked] = rows(ended, "asked")
    assert (asked.who, run.request.request_id in asked.detail) == (SAM, True)
    [said] = rows(ended, "assessed")
    assert ended.assessment is not None
    assert ended.assessment.summary in said.detail
    assert said.who == "northwind-stand-in-rules"
    [proposed] = rows(ended, "proposed")
    for told in ("1850.00 USD", "round 1", "policy 2026-07", "more than 1000.00 USD in all"):
        assert told in proposed.detail
    to_approvers = [e.who for e in rows(ended, "mail_sent") if "approval_request" in e.detail]
    assert to_approvers == [f"{MARIA}, {GRACE}"]

    [refused] = rows(ended, "refused")
    assert (refused.who, refused.refusal) == (TOM, Refusal.OVER_LIMIT)
    maria, grace = rows(ended, "approved")
    assert (maria.who, grace.who) == (MARIA, GRACE)
    assert maria.detail.startswith("I saw the photos. (signed 20")
    for told in ("key maria.silva.1", "manager", "up to 1000.00 USD", "needed: a finance director"):
        assert told in maria.detail
    assert "key grace.lin.1, finance_director, up to 50000.00 USD" in grace.detail
    assert [e.detail for e in rows(ended, "rechecked")] == ["all holds"]
    [made], [read] = rows(ended, "refund_made"), rows(ended, "refund_read")
    assert made.detail == read.detail == f"{ended.refund.id}: 1850.00 USD, succeeded"
    times = [entry.at for entry in ended.trail]
    assert times == sorted(times)
