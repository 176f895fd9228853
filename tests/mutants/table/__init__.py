"""All safeguards that are broken, in the order of the promises."""

from tests.mutants.table.ends import ENDS
from tests.mutants.table.input import INPUT
from tests.mutants.table.keys import KEYS
from tests.mutants.table.left import LEFT
from tests.mutants.table.mails import MAILS
from tests.mutants.table.model import MODEL
from tests.mutants.table.moments import MOMENTS
from tests.mutants.table.proposals import PROPOSALS
from tests.mutants.table.rights import RIGHTS
from tests.mutants.table.set_up import SET_UP
from tests.mutants.table.signatures import SIGNATURES
from tests.mutants.table.unknown import UNKNOWN

ALL = (
    *(*KEYS, *LEFT),
    *(*PROPOSALS, *SIGNATURES, *RIGHTS, *MOMENTS),
    *MAILS,
    *(*ENDS, *SET_UP),
    *MODEL,
    *INPUT,
    *UNKNOWN,
)
