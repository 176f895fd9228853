"""The stand-in for a language model: rules that read the letter and what the tools returned.

It is no language model and says so in its name. It follows the same protocol as one: first it asks
for the facts with the tools that it is offered, then it submits an assessment of the case.
"""

import json
import re
from dataclasses import dataclass
from datetime import datetime

CATEGORIES = {
    "damaged": (
        r"\bbroke(n)?\b",
        r"\bdamag",
        r"\bcrack",
        r"\bscratch",
        r"\bdefect",
        r"\bdent(s|ed)?\b",
        r"\bleak",
        r"\bshatter",
        r"\btorn\b",
        r"\bfaulty\b",
        r"\b(does not|doesn't|did not|didn't|will not|won't|no longer|stopped) (work|start)",
        r"\b(does not|doesn't|did not|didn't|will not|won't|no longer) (turn|switch)(s|es)? on\b",
        r"\bin pieces\b",
        r"\bdead on arrival\b",
    ),
    "not_received": (
        r"\b(never|not|hasn't|has not|didn't|did not) (yet )?(arriv|receiv|come|turn(ed)? up|show)",
        r"\bmissing (parcel|package|delivery|order)\b",
        r"\b(parcel|package|order|delivery) (is|went|was) (missing|lost)\b",
        r"\blost in (the )?(mail|post|transit)\b",
        r"\bstill waiting\b",
        r"\bwhere is my\b",
    ),
    "wrong_item": (
        r"\bwrong (item|product|colou?r|size|model|one|order)\b",
        r"\b(different|another) (item|product|colou?r|size|model)\b",
        r"\bnot what i ordered\b",
        r"\binstead of\b",
        r"\bsomeone else's order\b",
    ),
    "changed_mind": (
        r"\bchanged? my mind\b",
        r"\bno longer (want|need)",
        r"\b(don't|do not) (want|need|like)\b",
        r"\bordered by mistake\b",
        r"\b(found|saw) it cheaper\b",
        r"\bregret\b",
        r"\btoo (big|small|large|loud|heavy)\b",
    ),
}
MANIPULATION = (
    r"\b(ignore|disregard|forget|override)\b.{0,40}\b(instruction|rule|prompt|polic)",
    r"\bsystem prompt\b",
    r"\byou are (now|no longer)\b",
    r"\b(limit|threshold)s?\b.{0,40}\b(raised|lifted|increased|changed|removed)\b",
    r"\b(manager|supervisor|boss|director)\b.{0,40}\b(approved|agreed|authori[sz]ed|confirmed)\b",
    r"\b(approve|refund|pay)\b.{0,40}\b(immediately|automatically|without (asking|approval))",
    r"\bdeveloper mode\b",
)
THREATS = (
    r"\blawyers?\b",
    r"\blegal action\b",
    r"\bsue\b",
    r"\bcourt\b",
    r"\bchargeback\b",
    r"\bor else\b",
    r"\byou('ll| will) regret\b",
    r"\bbad reviews?\b",
)
# Words by which the clause for a category is found in the policy that the tool returned.
CLAUSE_WORDS = {
    "damaged": "damaged",
    "not_received": "not delivered",
    "wrong_item": "not what was ordered",
    "changed_mind": "no longer wants",
    "other": "do not say what happened",
}
LABELS = {
    "damaged": "an item that arrived damaged or defective",
    "not_received": "an order that did not arrive",
    "wrong_item": "an item that is not what was ordered",
    "changed_mind": "a change of mind",
    "other": "something that the letter does not make clear",
}


@dataclass(frozen=True)
class Facts:
    """What the tools returned, as text: the order, the policy, the earlier refunds."""

    order: str
    policy: str
    refunds: str


@dataclass(frozen=True)
class Assessment:
    """What the stand-in submits about a case."""

    category: str
    recommendation: str
    cited_clauses: list[str]
    summary: str


def customers_words(prompt: str) -> str:
    """The letter without what the caller wrote around it, where it is marked off by tags."""
    marked = re.findall(r"<([A-Za-z][\w-]*)[^<>]*>(.*)</\1\s*>", prompt, re.DOTALL)
    return str(marked[-1][1]).strip() if marked else prompt


def order_id_in(texts: list[str]) -> str:
    """The first order id that the texts name, or an empty text."""
    named = re.compile(
        r"\border(?:[ _-]?(?:id|number|no\.?))?(?:\s+is\b)?[\s:=#\"'*`]{0,6}"
        r"([A-Za-z0-9._-]*\d[A-Za-z0-9._-]*)",
        re.IGNORECASE,
    )
    for text in texts:
        found = named.search(text)
        if found is not None:
            return found[1].rstrip(".-_")
    return ""


def assess(letter: str, facts: Facts, now: datetime) -> Assessment:
    """Judge the letter by the rules above, in the light of the facts."""
    category = _category(letter)
    doubts = _doubts(letter, category, facts)
    too_late = _days_since_delivery(facts, now) > _return_window(facts)
    clauses = _clauses(facts.policy, CLAUSE_WORDS[category])
    if doubts:
        recommendation = "unsure"
        clauses += _clauses(facts.policy, "looked at by a person")
        reasons = " ".join(doubts)
    elif too_late:
        recommendation = "refuse"
        clauses += _clauses(facts.policy, "Nothing is refunded later")
        reasons = "The return window has passed."
    else:
        recommendation = "refund"
        reasons = "The policy covers this, and nothing in the order speaks against it."
    summary = f"The customer writes about {LABELS[category]}. {reasons} {_amounts(facts)}"
    return Assessment(category, recommendation, list(dict.fromkeys(clauses)), summary.strip())


def _category(letter: str) -> str:
    lowered = letter.lower()
    scores = {
        category: sum(re.search(pattern, lowered) is not None for pattern in patterns)
        for category, patterns in CATEGORIES.items()
    }
    best = max(scores, key=lambda category: scores[category])
    return best if scores[best] else "other"


def _doubts(letter: str, category: str, facts: Facts) -> list[str]:
    lowered = letter.lower()
    doubts = []
    if any(re.search(pattern, lowered, re.DOTALL) for pattern in MANIPULATION):
        doubts.append("The letter tries to give orders or claims an approval; that is no evidence.")
    if any(re.search(pattern, lowered) for pattern in THREATS):
        doubts.append("The letter contains a threat.")
    if category == "other":
        doubts.append("It does not say what happened.")
    if not re.search(r"\"?(id|order_id)\"?\s*[:=]", facts.order):
        doubts.append("The order could not be read.")
    if not facts.policy:
        doubts.append("The policy could not be read.")
    if category == "not_received" and _delivered_at(facts) is not None:
        doubts.append("The order service says that the order was delivered.")
    return doubts


def _delivered_at(facts: Facts) -> datetime | None:
    found = re.search(r"delivered_at\"?\s*[:=]\s*\"?(\d{4}-\d\d-\d\d[T ][\d:.]+)", facts.order)
    return None if found is None else datetime.fromisoformat(f"{found[1][:19]}+00:00")


def _days_since_delivery(facts: Facts, now: datetime) -> float:
    delivered = _delivered_at(facts)
    return 0.0 if delivered is None else (now - delivered).total_seconds() / 86400


def _return_window(facts: Facts) -> float:
    found = re.search(r"return_window_days\"?\s*[:=]\s*(\d+)", facts.policy) or re.search(
        r"within (\d+)\s+days", facts.policy
    )
    return float("inf") if found is None else float(found[1])


def _clauses(policy: str, words: str) -> list[str]:
    """The numbers of the policy's clauses that contain the words."""
    # A tool may return the text inside JSON, where a line break is two characters.
    plain = re.sub(r"(\\n|\s)+", " ", policy.replace("\\u00a7", "§"))
    return [
        f"§{number}"
        for number, clause in re.findall(r"§(\d+)([^§]*)", plain)
        if words.lower() in clause.lower()
    ]


def _amounts(facts: Facts) -> str:
    count = len(re.findall(r"\"?(?:refund_)?id\"?\s*[:=]\s*\"?re_", facts.refunds))
    if not count:
        return "No earlier refund on this order was found."
    return f"Earlier refunds on this order: {count}."


def count_tokens(value: object) -> int:
    """A plausible number of tokens: words and signs of the text (or of the JSON) of a value."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return len(re.findall(r"\w+|[^\w\s]", text))
