"""When a right was gone for certain: only then may the drill call an approval void."""

from typing import Any

import pytest

from starters.drill.rights import Loss, Rights


async def control(path: str, body: Any) -> None:
    """Nobody is there who has rights."""


@pytest.fixture
def rights() -> Rights:
    """Two plans have taken the right away: at 10 until 13, and at 12 until 15."""
    rights = Rights(control)
    rights.losses += [
        Loss(9.9, since=10.0, until=13.0, back_at=13.1),
        Loss(11.9, since=12.0, until=15.0, back_at=15.1),
    ]
    return rights


@pytest.mark.parametrize(
    ("start", "end", "lost"),
    [
        (10.5, 11.5, True),
        (12.5, 12.9, True),
        (9.0, 11.0, False),
        (12.5, 14.0, False),
        (13.5, 14.0, False),
        (16.0, 17.0, False),
    ],
    ids=["within", "both", "begun before", "given back within", "given back by the first", "after"],
)
def test_it_was_lost_all_the_time(rights: Rights, start: float, end: float, lost: bool) -> None:
    """A reading that may have seen the right is none of an approver who has lost it."""
    assert rights.was_lost(start, end) is lost


def test_it_is_given_back_late_where_the_company_was_down() -> None:
    """Found by seed 68068, run 89: another plan gave it back after this one had taken it away."""
    rights = Rights(control)
    rights.losses += [
        Loss(9.9, since=10.0, until=13.0, back_at=16.0),
        Loss(13.4, since=13.5, until=16.5, back_at=16.6),
    ]
    assert not rights.was_lost(14.0, 15.0)
    rights.losses[0].back_at = 13.1
    assert rights.was_lost(14.0, 15.0)


async def test_whoever_lost_it_has_it_back() -> None:
    """It is taken away for a moment, and whoever waits for it goes on."""
    told = []

    async def note(path: str, body: Any) -> None:
        told.append(body["active"])

    rights = Rights(note, seconds=0)
    await rights.lose()
    await rights.until_back()
    assert told == [False, True]
    assert not rights.was_lost(rights.losses[0].until, rights.losses[0].until + 1)
