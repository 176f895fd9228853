"""The commands that run the installation, hold it against its promises, and keep its histories.

What each does is in the module of its name.
Those modules load the Temporal SDK, which takes most of a second, so they are imported when their
command runs: `refund --help` must answer at once.
"""

from pathlib import Path
from typing import Annotated

import typer

from starters.app import app, do, settings
from starters.errors import CommandError, Exit
from starters.options import (
    AllOpen,
    AllRuns,
    BuildId,
    Deployment,
    Histories,
    Json,
    OneRun,
    Output,
    Patches,
    Query,
    RunId,
    Since,
    Temporal,
)


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

    do(run_up(settings(), data, temporal))


@app.command(epilog="Example: refund demo --keep")
def demo(
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave everything up, and print the links.")
    ] = False,
    temporal: Temporal = None,
) -> None:
    """Play the story of order 8890 for real, with its kills, and check the books."""
    from starters.demo import demo as run_demo

    do(run_demo(keep=keep, temporal=temporal))


@app.command(epilog="Example: TEMPORAL_ADDRESS=temporal.example:7233 refund worker")
def worker(deployment: Deployment = None, build_id: BuildId = None) -> None:
    """Run a worker against any Temporal, until SIGTERM or Ctrl-C."""
    from starters.worker import become_worker

    become_worker(settings(deployment=deployment, build_id=build_id))


@app.command(epilog="Example: refund doctor --fix; refund doctor --patches --since 2026-08-01")
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
    patches: Patches = False,
    since: Since = None,
    as_json: Json = False,
) -> None:
    """Say what is wrong with the set-up, and how to mend it; or mend what is safe to mend."""
    if since is not None and not patches:
        raise CommandError("--since goes with --patches", Exit.USAGE)
    if fix and patches:
        raise CommandError("--patches changes nothing, so there is no --fix", Exit.USAGE)
    if patches:
        from starters.patches import patches as run_patches

        do(run_patches(settings(), since.astimezone() if since else None, as_json=as_json))
        return
    from starters.doctor import doctor as run_doctor

    do(run_doctor(fix=fix, keys=keys, as_json=as_json))


@app.command(epilog="Example: refund history 8890 -o refund-8890.json")
def history(
    run: OneRun = None,
    output: Output = None,
    run_id: RunId = None,
    all_runs: AllRuns = False,
    query: Query = None,
) -> None:
    """Save a run's events as JSON, as the Temporal Web UI does; holds the customer's words."""
    from starters.history import check_usage, save_histories, save_history

    check_usage(run, run_id, output, query, all_runs=all_runs)
    if run is not None:
        do(save_history(settings(), run, run_id, output))
    elif output is not None:
        do(save_histories(settings(), query, output))


@app.command(epilog="Example: refund replay --open")
def replay(
    sources: Histories = None,
    all_open: AllOpen = False,
    as_json: Json = False,
) -> None:
    """Replay runs against the code that is here, before it is deployed; changes nothing."""
    from starters.replay import replay as run_replay

    do(run_replay(sources or [], all_open=all_open, as_json=as_json))


@app.command(epilog="Example: refund drill --seed 7 --runs 300, or --from ../release-1")
def drill(
    runs: Annotated[
        int, typer.Option("--runs", metavar="N", min=0, help="Runs by chance, after the matrix.")
    ] = 60,
    seed: Annotated[
        int | None,
        typer.Option("--seed", metavar="N", min=0, help="Same seed, same plans [default: new]."),
    ] = None,
    run: Annotated[
        int | None, typer.Option("--run", metavar="K", min=0, help="Only run K of that seed.")
    ] = None,
    plan: Annotated[
        Path | None, typer.Option("--plan", metavar="FILE", help="Only the plan in this file.")
    ] = None,
    older: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FOLDER",
            help="Only runs that begin under the release in this folder; ours replaces it.",
        ),
    ] = None,
    matrix: Annotated[
        bool, typer.Option("--matrix/--no-matrix", help="Kill each process around each effect.")
    ] = True,
    hosts: Annotated[
        bool | None,
        typer.Option(
            "--hosts/--no-hosts", help="Cut hosts off the network [default: where root and ip are]."
        ),
    ] = None,
    apart: Annotated[
        str | None, typer.Option("--apart", metavar="CASE", help="Only this case of hosts apart.")
    ] = None,
    shrink: Annotated[
        bool, typer.Option("--shrink/--no-shrink", help="Make plans that failed smaller.")
    ] = True,
    junit: Annotated[
        Path | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML, too.")
    ] = None,
    as_json: Json = False,
    temporal: Temporal = None,
) -> None:
    """Break everything on real processes, and hold the outside books to the promises."""
    from starters.drill.command import Wanted
    from starters.drill.command import drill as run_drill

    do(
        run_drill(
            Wanted(
                matrix=matrix,
                runs=runs,
                seed=seed,
                run=run,
                plan=plan,
                older=older,
                hosts=hosts,
                apart=apart,
                shrink=shrink,
                as_json=as_json,
                junit=junit,
                temporal=temporal,
            )
        )
    )
