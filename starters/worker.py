"""`refund worker`: become the worker process, against the Temporal that the command finds."""

import os
import sys
from typing import NoReturn

from starters import processes
from starters.connect import Target, find_target
from workers.settings import Settings


def become_worker(settings: Settings) -> NoReturn:
    """Replace this process by the worker, so that signals reach the worker itself."""
    environment = worker_environment(find_target(settings), settings)
    os.execve(sys.executable, processes.python_module("workers"), environment)  # noqa: S606


def worker_environment(target: Target, settings: Settings) -> dict[str, str]:
    """Our environment, where Temporal is, and which version the worker shall be.

    With `refund up`, where the company is too.
    """
    local = {}
    if target.links is not None:
        local["NORTHWIND_COMPANY_URL"] = target.links.company
        local["NORTHWIND_SMTP_URL"] = target.links.smtp
    return {
        **local,
        **os.environ,
        "TEMPORAL_ADDRESS": target.address,
        "TEMPORAL_NAMESPACE": target.namespace,
        "NORTHWIND_DEPLOYMENT": settings.deployment,
        "NORTHWIND_BUILD_ID": settings.build_id,
        "PYTHONPATH": processes.python_path(os.environ),
    }
