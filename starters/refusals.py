"""Why a message did not count, in words that tell its sender what to do next."""

from domain.trail import Refusal

IN_WORDS: dict[Refusal, str] = {
    Refusal.MALFORMED: "it is no signed statement of this kind",
    Refusal.UNKNOWN_SIGNAL: "the run knows no such signal",
    Refusal.BAD_SIGNATURE: "the signature does not fit the key in the staff directory",
    Refusal.UNKNOWN_KEY: "the staff directory does not list this key for this person",
    Refusal.KEY_NOT_VALID: "the key was not valid when it signed",
    Refusal.UNKNOWN_PERSON: "the staff directory does not know this person",
    Refusal.NOT_ACTIVE: "this person does not work here any more",
    Refusal.NO_RIGHT: "only a manager or a finance director may decide",
    Refusal.OVER_LIMIT: "the amount, with earlier refunds on the order, is above their limit",
    Refusal.NEEDS_DIRECTOR: "one manager has approved; the other one must be a finance director",
    Refusal.IS_REQUESTER: "who asks for a refund cannot decide on it; another manager can",
    Refusal.IS_CUSTOMER: "the customer cannot decide on their own refund",
    Refusal.OTHER_ENVIRONMENT: "it was signed for another environment (NORTHWIND_ENVIRONMENT)",
    Refusal.OTHER_RUN: "it was signed for another run",
    Refusal.OTHER_REQUEST: "it was signed for another request on this order",
    Refusal.OTHER_PROPOSAL: "it was signed for another proposal; look at the new one and sign that",
    Refusal.DUPLICATE: "this very message was counted before",
    Refusal.ALREADY_DECIDED: "the proposal was decided before it came",
    Refusal.ALREADY_APPROVED: "this person has approved already; another one is needed too",
    Refusal.TOO_EARLY: "it came before there was a proposal, and too many others waited",
    Refusal.TOO_LATE: "it came too late",
    Refusal.FROM_THE_FUTURE: "it is signed in the future; set this computer's clock",
    Refusal.CLOSED: "the run had closed",
    Refusal.COULD_NOT_BE_CHECKED: "the staff directory could not be asked; try again later",
}
