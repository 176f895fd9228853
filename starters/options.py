"""What several commands, or long ones, take: arguments and options with their help."""

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

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

Deployment = Annotated[
    str | None,
    typer.Option(
        "--deployment",
        metavar="NAME",
        envvar="NORTHWIND_DEPLOYMENT",
        help="The Worker Deployment whose tasks to take; goes with --build-id.",
    ),
]
BuildId = Annotated[
    str | None,
    typer.Option(
        "--build-id",
        metavar="ID",
        envvar="NORTHWIND_BUILD_ID",
        help="Which version of the deployment this code is; goes with --deployment.",
    ),
]

OneRun = Annotated[str | None, typer.Argument(metavar="RUN", help="An order id or a workflow id.")]
Output = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        metavar="FILE",
        help="A file [default: standard output]; with --all, a folder.",
    ),
]
AllRuns = Annotated[
    bool, typer.Option("--all", help="Each run that the server has, to a file of its own.")
]
Query = Annotated[
    str | None,
    typer.Option(
        "--query",
        metavar="QUERY",
        help="With --all: only these, as the Web UI filters: 'ExecutionStatus = \"Running\"'.",
    ),
]
Histories = Annotated[
    list[str] | None,
    typer.Argument(metavar="FILE|FOLDER|RUN…", help="Saved histories, order or workflow ids."),
]
AllOpen = Annotated[
    bool, typer.Option("--open", help="All runs that are open on the server right now.")
]
Patches = Annotated[
    bool,
    typer.Option("--patches", help="Say instead which patches of the code open runs still need."),
]
Since = Annotated[
    datetime | None,
    typer.Option(
        "--since",
        help="With --patches: from when on only workers of this code were at work.",
        formats=["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S%z"],
    ),
]
