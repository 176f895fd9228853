"""`refund demo`: the story of order 8890, for real, with its kills; then the books."""

import os
import shutil
import tempfile
import time
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from temporalio.client import Client

from domain.models import Stage
from domain.money import Money
from domain.request import RefundRequest
from domain.statements import StatementKind, Verdict
from domain.trail import Entry, RunStatus
from starters import books, runs, screen
from starters.decide import send
from starters.errors import CommandError, Exit
from starters.folder import Folder
from starters.installation import Installation, find_temporal
from starters.interrupts import ending, unless
from starters.start import begin
from starters.statements import Signer
from workers.settings import LOCAL

LETTER = (
    "My espresso machine arrived with a cracked boiler and leaks all over the counter. "
    "I would like my money back, please. Ada Park"
)
# A step of the story takes a second or two; one that takes this long has gone wrong.
_PATIENCE_SECONDS = 60.0


async def demo(*, keep: bool, temporal: Path | None) -> None:
    """Play the story in a fresh folder, and hold the company's books against it.

    Raises:
        CommandError: the books are wrong, or a part did not start.
    """
    program = find_temporal(temporal)
    folder = Folder(Path(tempfile.mkdtemp(prefix="refund-demo-")))
    done = False
    try:
        with folder.hold() as lock, ending() as ended:
            story = Story(folder, lock, program)
            try:
                done = await unless(ended, story.play())
                if done and keep:
                    await unless(ended, story.keep_up())
            finally:
                await story.installation.stop()
    finally:
        if done:
            shutil.rmtree(folder.path)
        else:
            screen.hint(f"Data and logs are left in {folder.path}")
    if not done:
        raise KeyboardInterrupt


class Story:
    """The demo's steps, with what it has seen so far."""

    def __init__(self, folder: Folder, lock: int, temporal: Path) -> None:
        """Prepare an installation that nothing of the user's own settings reaches."""
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("NORTHWIND_")
        }
        self.installation = Installation(
            folder, lock, temporal, environment=environment, usual_ports=False, say=self._step
        )
        self._folder = folder
        self._began = time.monotonic()
        self._own: list[Entry] = []
        self._follower = screen.Follower(indent=10)

    async def play(self) -> None:
        """Letter, wait, kills, approval, refund; then timeline and books."""
        screen.heading("Three processes start")
        client = await self.installation.start()
        screen.heading(f"A customer's letter about order {books.ORDER}")
        found = await self._hand_in(client)
        await self._until_waiting(client, found)
        screen.heading("It waits for a manager, and everything is killed")
        await self._kill()
        screen.heading("All start again, on the same data")
        client = await self.installation.start()
        self._note("started again", "all three, on the same data")
        found = await runs.find_or_fail(client, books.ORDER)
        screen.heading("A manager approves by Signal")
        status = await self._approve_and_follow(client, found)
        screen.heading("The timeline")
        rows = sorted([*status.trail, *self._own], key=lambda entry: entry.at)
        screen.show(screen.timeline(rows))
        screen.heading("The books of the outside world")
        self._check_books(await self._read_books(), status)

    async def keep_up(self) -> None:
        """Leave everything up until somebody wants an end."""
        links = self.installation.links
        screen.say("")
        screen.say(f"the run in Temporal's Web UI  {links.of_run(f'refund-order-{books.ORDER}')}")
        screen.say(f"the mailbox                   {links.mailbox}")
        screen.say(f"for other commands            export NORTHWIND_DATA_DIR={self._folder.path}")
        screen.say("Ctrl-C ends it and removes the data.")
        await self.installation.until_one_ends()

    async def _hand_in(self, client: Client) -> runs.Found:
        screen.show(_letter())
        draft = RefundRequest(
            environment=LOCAL,
            order_id=books.ORDER,
            request_id=uuid.uuid4().hex,
            message=LETTER,
            requester=books.REQUESTER,
            statement="",
        )
        signer = Signer(self._folder.path / "keys", books.REQUESTER)
        begun = await begin(client, signer, draft)
        self._step(f"{begun.found.workflow_id} started, signed by {books.REQUESTER}")
        return begun.found

    async def _until_waiting(self, client: Client, found: runs.Found) -> None:
        def told(status: RunStatus) -> bool:
            mails = [entry for entry in status.trail if entry.what == "mail_sent"]
            return status.stage is Stage.AWAITING_APPROVAL and len(mails) >= 2

        await self._follow(client, found, told)

    async def _kill(self) -> None:
        pids = self.installation.pids
        await self.installation.kill()
        listed = ", ".join(f"{name} {pid}" for name, pid in pids.items())
        self._note("killed", f"SIGKILL to {listed}")
        self._step(f"SIGKILL to {listed}: nothing of it runs any more")

    async def _approve_and_follow(self, client: Client, found: runs.Found) -> RunStatus:
        status = await runs.ask(found.handle, _PATIENCE_SECONDS)
        if status is None or status.proposal is None:
            raise CommandError("the run does not wait for a decision any more", Exit.CHECK_FAILED)
        amount = screen.money(status.proposal.amount)
        signer = Signer(self._folder.path / "keys", books.APPROVER)
        statement = signer.decision(LOCAL, status.proposal, Verdict.APPROVE, "Clearly broken.")
        self._step(f"{books.APPROVER} approves {amount}")
        await send(client, found, StatementKind.DECISION, statement, _PATIENCE_SECONDS)
        return await self._follow(client, found, lambda s: s.stage is Stage.CLOSED)

    async def _follow(self, client: Client, found: runs.Found, until: Any) -> RunStatus:
        status = await runs.follow(client, found, until, _PATIENCE_SECONDS, self._follower.show)
        if status is None or not until(status):
            where = screen.outcome_line(status) if status is not None else "no word from the run"
            raise CommandError(f"the story stands still: {where}", Exit.CHECK_FAILED)
        return status

    async def _read_books(self) -> dict[str, Any]:
        import httpx

        async with httpx.AsyncClient(timeout=10) as http:
            answer = await http.get(f"{self.installation.links.company}/books")
        read: dict[str, Any] = answer.raise_for_status().json()
        return read

    def _check_books(self, read: dict[str, Any], status: RunStatus) -> None:
        from rich.table import Table

        table = Table.grid(padding=(0, 2))
        for refund in books.refunds(read):
            made = Money(amount_minor=refund["amount_minor"], currency=books.CURRENCY)
            table.add_row("refund", str(made), f"{refund['id']}, {refund['status']}")
        for note in books.noted(read):
            told = f"the order service has noted {note['refund']}"
            table.add_row("order", books.ORDER, told)
        for mail in read["mails"]:
            table.add_row("mail", mail["purpose"], ", ".join(mail["to"]))
        screen.show(table)
        wrong = books.mistakes(read)
        if status.outcome is None or status.outcome.value != "refunded":
            wrong.insert(0, f"the run ended: {screen.outcome_line(status)}")
        if wrong:
            raise CommandError(f"the books are wrong: {'; '.join(wrong)}", Exit.CHECK_FAILED)
        seconds = time.monotonic() - self._began
        screen.say("")
        screen.say(
            f"The books are right: one refund of $420.00, noted once, one mail of each kind."
            f" ({seconds:.0f} s)"
        )

    def _step(self, text: str) -> None:
        screen.say(f"{time.monotonic() - self._began:6.1f} s  {text}")

    def _note(self, what: str, detail: str) -> None:
        self._own.append(Entry(at=datetime.now(UTC), what=what, detail=detail))


def _letter() -> Any:
    from rich.padding import Padding
    from rich.text import Text

    return Padding(Text(LETTER, style="italic"), (0, 10))
