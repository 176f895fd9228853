"""The audit trail: all of the story, some of the noise, and every answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from domain.trail import DETAIL_LIMIT, REFUSED_IN_DETAIL, Entry, Refusal, RunStatus, Trail
from tests.domain.build import NOW


def entry(what: str, message_id: str = "", refusal: Refusal | None = None) -> Entry:
    """A row of the trail."""
    return Entry(at=NOW, what=what, message_id=message_id, refusal=refusal)


@given(rows=st.lists(st.none() | st.sampled_from(Refusal), max_size=200))
def test_the_story_is_whole_and_noise_is_counted(rows: list[Refusal | None]) -> None:
    """Rows stay in order; of the refused ones the last stay, and the count is exact."""
    trail = Trail()
    for number, refusal in enumerate(rows):
        trail.add(entry(str(number), refusal=refusal))
    refused = [number for number, refusal in enumerate(rows) if refusal is not None]
    kept = set(range(len(rows))) - set(refused[: max(0, len(refused) - REFUSED_IN_DETAIL)])
    assert [row.what for row in trail.entries] == [str(number) for number in sorted(kept)]
    assert trail.refused == {refusal: rows.count(refusal) for refusal in Refusal if refusal in rows}


def test_a_thousand_bad_messages_do_not_push_the_story_out() -> None:
    """What counted is still there after any number of messages that did not."""
    trail = Trail()
    trail.add(entry("proposed"))
    for number in range(1_000):
        trail.add(entry("refused", f"d-{number}", Refusal.MALFORMED))
    trail.add(entry("approved", "d-ok"))
    words = [row.what for row in trail.entries]
    assert (words[0], words[-1]) == ("proposed", "approved")
    assert len(words) == REFUSED_IN_DETAIL + 2
    assert trail.refused == {Refusal.MALFORMED: 1_000}
    assert trail.entries[-2].message_id == "d-999"


def test_a_row_has_a_greatest_length() -> None:
    """No message of a stranger can fill the history through the trail."""
    assert Entry(at=NOW, what="refused", detail="x" * DETAIL_LIMIT).detail
    for field, size in (("detail", DETAIL_LIMIT), ("who", 254)):
        with pytest.raises(ValidationError):
            Entry.model_validate({"at": NOW, "what": "refused", field: "x" * (size + 1)})


KEPT = entry("decision_kept", "d-1")
APPROVED = entry("approved", "d-1")


def test_garbage_does_not_push_out_the_answer_to_a_signed_message() -> None:
    """P4: the sender of a message with an id finds its reason after a flood without ids."""
    trail = Trail()
    trail.add(entry("refused", "d-1", Refusal.OVER_LIMIT))
    for _ in range(10 * REFUSED_IN_DETAIL):
        trail.add(entry("refused", "", Refusal.MALFORMED))
    answer = RunStatus(trail=trail.entries).answer_to("d-1")
    assert answer is not None
    assert answer.refusal is Refusal.OVER_LIMIT
    assert len(trail.entries) == REFUSED_IN_DETAIL + 1


REFUSED = entry("refused", "d-1", Refusal.TOO_LATE)
REPEATED = entry("refused", "d-1", Refusal.DUPLICATE)
ANOTHER = entry("approved", "d-2")


@pytest.mark.parametrize(
    ("rows", "answer"),
    [
        ((), None),
        ((ANOTHER,), None),
        ((ANOTHER, APPROVED, ANOTHER), APPROVED),
        ((KEPT, ANOTHER, REFUSED), REFUSED),
        ((APPROVED, REPEATED), APPROVED),
        ((REFUSED, REPEATED, REPEATED), REFUSED),
        ((REPEATED,), REPEATED),
    ],
)
def test_a_sender_finds_the_answer_to_a_message(
    rows: tuple[Entry, ...], answer: Entry | None
) -> None:
    """The last word counts, and a message that was delivered twice keeps its first answer."""
    assert RunStatus(trail=rows).answer_to("d-1") == answer
