"""The `refund` command: what can be typed. What it does is in the module of each command.

Those modules load the Temporal SDK, which takes most of a second, so they are imported when their
command runs: `refund --help` must answer at once.
"""

import os
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from starters.decide import Saying
    from workers.settings import Settings

app = typer.Typer(
    name="refund",
    help="Refunds that survive crashes: hand in, approve, look at, run.",
    epilog="Exit codes: 0 done, 1 a check failed, 2 wrong input, 3 refused or not counted, "
    "4 no such run or closed, 5 cannot be reached, 6 not taken up in time, 7 already running, "
    "70 a mistake of ours, 130 interrupted.",
    invoke_without_command=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Run = Annotated[str, typer.Argument(metavar="RUN", help="An order id or a workflow id.")]
RunId = Annotated[
    str | None,
    typer.Option(
        "--run-id", metavar="ID", help="An earlier run of this order, as `list --order` shows it."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print data as JSON.")]
Person = Annotated[
    str, typer.Option("--as", metavar="ADDRESS", envvar="NORTHWIND_AS", help="Who says it.")
]
Comment = Annotated[
    str, typer.Option("--comment", metavar="TEXT", help="For the run's trail; signed too.")
]
PrintOnly = Annotated[
    bool, typer.Option("--print", help="Print the signed JSON for the Web UI; send nothing.")
]
WaitSeconds = Annotated[
    float,
    typer.Option(
        "--wait-seconds", metavar="SECONDS", min=0.1, help="How long to wait for the run's answer."
    ),
]
Temporal = Annotated[
    Path | None,
    typer.Option("--temporal", metavar="PATH", help="The `temporal` program to run."),
]


@app.callback()
def options(
    context: typer.Context,
    debug: Annotated[
        bool, typer.Option("--debug", envvar="NORTHWIND_DEBUG", help="Show tracebacks.")
    ] = False,
) -> None:
    """Refunds that survive crashes: hand in, approve, look at, run."""
    if debug:
        os.environ["NORTHWIND_DEBUG"] = "1"
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command(epilog="Example: refund up --data .northwind")
def up(
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="DIR", help="Data folder [default: .northwind]."),
    ] = None,
    temporal: Temporal = None,
) -> None:
    """Run Temporal, the stand-in company and a worker until Ctrl-C; the data stays."""
    from starters.up import up as run_up

    _do(run_up(_settings(), data, temporal))


@app.command(epilog="Example: refund demo --keep")
def demo(
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave everything up, and print the links.")
    ] = False,
    temporal: Temporal = None,
) -> None:
    """Play the story of order 8890 for real, with its kills, and check the books."""
    from starters.demo import demo as run_demo

    _do(run_demo(keep=keep, temporal=temporal))


@app.command(epilog="Example: TEMPORAL_ADDRESS=temporal.example:7233 refund worker")
def worker() -> None:
    """Run a worker against any Temporal, until SIGTERM or Ctrl-C."""
    from starters.worker import become_worker

    become_worker(_settings())


@app.command(epilog="Example: refund doctor --fix")
def doctor(
    fix: Annotated[
        bool,
        typer.Option(
            "--fix", help="Make the sweep's schedule, register attributes, keep closed runs."
        ),
    ] = False,
    keys: Annotated[
        bool, typer.Option(help="Look at the keys too; not needed where nobody signs.")
    ] = True,
    as_json: Json = False,
) -> None:
    """Say what is wrong with the set-up, and how to mend it; or mend what is safe to mend."""
    from starters.doctor import doctor as run_doctor

    _do(run_doctor(fix=fix, keys=keys, as_json=as_json))


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
    _do(run_start(_settings(), wanted, wait=wait, wait_seconds=wait_seconds, as_json=as_json))


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
    _do(list_runs(_settings(), wanted, as_json=as_json))


@app.command(epilog="Example: refund show 8890")
def show(run: Run, run_id: RunId = None, as_json: Json = False) -> None:
    """Tell the whole story of a run; works without a worker too, with less detail."""
    from starters.show import show as run_show

    _do(run_show(_settings(), run, run_id, as_json=as_json))


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
    _do(decide(_settings(), saying, Verdict.APPROVE))


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
    _do(decide(_settings(), saying, Verdict.REJECT))


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

    _do(run_withdraw(_settings(), _saying(run, person, comment, print_only, wait_seconds, as_json)))


@app.command(epilog="Example: refund retry 8890 --wait")
def retry(
    run: Run,
    wait: Annotated[bool, typer.Option("--wait", help="Follow the run to its end.")] = False,
    wait_seconds: WaitSeconds = 30.0,
    as_json: Json = False,
) -> None:
    """Go on with a request that ended with a person: same request, same keys, paid once."""
    from starters.retry import retry as run_retry

    _do(run_retry(_settings(), run, wait=wait, wait_seconds=wait_seconds, as_json=as_json))


@app.command(epilog="Example: refund history 8890 -o refund-8890.json")
def history(
    run: Run,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="A file [default: standard output]."),
    ] = None,
    run_id: RunId = None,
) -> None:
    """Save a run's events as JSON, as the Temporal Web UI does; holds the customer's words."""
    from starters.history import save_history

    _do(save_history(_settings(), run, run_id, output))


def _do(work: Coroutine[Any, Any, None]) -> None:
    import asyncio

    asyncio.run(work)


def _settings() -> "Settings":
    from workers.settings import load_settings

    return load_settings()


def _saying(
    run: str, person: str, comment: str, print_only: bool, wait_seconds: float, as_json: bool
) -> "Saying":
    from starters.decide import Saying

    return Saying(run, person, comment, print_only, wait_seconds, as_json)
