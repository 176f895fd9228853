"""The commands of people who work with refunds. What each does is in the module of its name.

Those modules load the Temporal SDK, which takes most of a second, so they are imported when their
command runs: `refund --help` must answer at once.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from starters import upkeep
from starters.app import app, do, settings
from starters.options import (
    Comment,
    Json,
    Person,
    PrintOnly,
    Run,
    RunId,
    WaitSeconds,
)

if TYPE_CHECKING:
    from starters.decide import Saying

# The other commands are on the same app; whoever loads these has loaded all.
__all__ = ["app", "upkeep"]


@app.command(epilog='Example: refund start --order 8891 --message "It came broken." --wait')
def start(
    order: Annotated[str, typer.Option("--order", metavar="ID", help="The order's id.")],
    message: Annotated[
        str | None, typer.Option("--message", metavar="TEXT", help="The customer's own words.")
    ] = None,
    message_file: Annotated[
        Path | None,
        typer.Option("--message-file", metavar="FILE", help="A UTF-8 file with those words."),
    ] = None,
    amount: Annotated[
        str | None,
        typer.Option(
            "--amount", metavar="AMOUNT", help='Such as "420.00" [default: all that is left].'
        ),
    ] = None,
    request_id: Annotated[
        str | None,
        typer.Option("--request-id", metavar="ID", help="Makes a repeat harmless [default: new]."),
    ] = None,
    new_request: Annotated[
        bool,
        typer.Option("--new-request", help="Do not go on with a run that was ended."),
    ] = False,
    requester: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="ADDRESS",
            envvar="NORTHWIND_AS",
            help="Who hands it in [default: sam.okafor@northwind.example, local only].",
        ),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Follow the run to its end.")] = False,
    wait_seconds: WaitSeconds = 30.0,
    as_json: Json = False,
) -> None:
    """Hand in a customer's letter about an order, signed by a member of staff."""
    from starters.draft import Wanted
    from starters.start import start as run_start

    wanted = Wanted(
        order=order,
        message=message,
        message_file=message_file,
        amount=amount,
        request_id=request_id,
        new_request=new_request,
        requester=requester,
    )
    do(run_start(settings(), wanted, wait=wait, wait_seconds=wait_seconds, as_json=as_json))


@app.command("list", epilog="Example: refund list --waiting")
def list_(
    waiting: Annotated[
        bool, typer.Option("--waiting", help="Only those that wait for a decision.")
    ] = False,
    order: Annotated[
        str | None, typer.Option("--order", metavar="ID", help="Only the runs of this order.")
    ] = None,
    outcome: Annotated[
        str | None,
        typer.Option(
            "--outcome", metavar="OUTCOME", help="Only those that ended so, such as refunded."
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, help="How many at most.")
    ] = 50,
    as_json: Json = False,
) -> None:
    """Show the refunds that there are, newest first."""
    from starters.listing import list_runs, make_filter

    wanted = make_filter(waiting=waiting, order=order, outcome=outcome, limit=limit)
    do(list_runs(settings(), wanted, as_json=as_json))


@app.command(epilog="Example: refund show 8890")
def show(run: Run, run_id: RunId = None, as_json: Json = False) -> None:
    """Tell the whole story of a run; works without a worker too, with less detail."""
    from starters.show import show as run_show

    do(run_show(settings(), run, run_id, as_json=as_json))


@app.command(epilog="Example: refund approve 8890 --as maria.silva@northwind.example")
def approve(
    run: Run,
    person: Person,
    comment: Comment = "",
    print_only: PrintOnly = False,
    wait_seconds: WaitSeconds = 30.0,
    as_json: Json = False,
) -> None:
    """Approve exactly what is proposed now; returns once the run says whether that counts."""
    from domain.statements import Verdict
    from starters.decide import decide

    saying = _saying(run, person, comment, print_only, wait_seconds, as_json)
    do(decide(settings(), saying, Verdict.APPROVE))


@app.command(epilog="Example: refund reject 8890 --as maria.silva@northwind.example")
def reject(
    run: Run,
    person: Person,
    comment: Comment = "",
    print_only: PrintOnly = False,
    wait_seconds: WaitSeconds = 30.0,
    as_json: Json = False,
) -> None:
    """Reject what is proposed now; returns once the run says whether that counts."""
    from domain.statements import Verdict
    from starters.decide import decide

    saying = _saying(run, person, comment, print_only, wait_seconds, as_json)
    do(decide(settings(), saying, Verdict.REJECT))


@app.command(epilog="Example: refund withdraw 8890 --as sam.okafor@northwind.example")
def withdraw(
    run: Run,
    person: Person,
    comment: Comment = "",
    print_only: PrintOnly = False,
    wait_seconds: WaitSeconds = 30.0,
    as_json: Json = False,
) -> None:
    """Withdraw a request before its money moves; needs no proposal."""
    from starters.decide import withdraw as run_withdraw

    do(run_withdraw(settings(), _saying(run, person, comment, print_only, wait_seconds, as_json)))


@app.command(epilog="Example: refund retry 8890 --wait")
def retry(
    run: Run,
    wait: Annotated[bool, typer.Option("--wait", help="Follow the run to its end.")] = False,
    wait_seconds: WaitSeconds = 30.0,
    as_json: Json = False,
) -> None:
    """Go on with a request that ended with a person: same request, same keys, paid once."""
    from starters.retry import retry as run_retry

    do(run_retry(settings(), run, wait=wait, wait_seconds=wait_seconds, as_json=as_json))


def _saying(
    run: str, person: str, comment: str, print_only: bool, wait_seconds: float, as_json: bool
) -> "Saying":
    from starters.decide import Saying

    return Saying(run, person, comment, print_only, wait_seconds, as_json)
