"""The composition root: settings in, Activities and a worker out. Nothing is wired at import time.

Called by the worker process and by tests alike.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from temporalio.client import Client
from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.worker import Worker, WorkerDeploymentConfig

from activities.cases import Cases
from activities.clock import Clock, system_clock
from activities.company import CompanyClient
from activities.decisions import Decisions
from activities.ledger import Ledger
from activities.mail import Mailer
from activities.model import Agent
from activities.model_access import ModelAccess
from activities.orders import Orders
from activities.payments import StripePayments
from activities.smtp import MailServer
from activities.staff import StaffDirectory
from activities.sweep import Sweep
from activities.tools import Tools
from activities.watch import DrillWatch, NoWatch
from domain.names import TASK_QUEUE
from workers.in_step import InStep
from workers.interceptor import RefundInterceptor
from workers.release import RELEASE
from workers.sandbox import WORKFLOWS, build_runner
from workers.settings import Settings, SettingsError

# A worker that was killed leaves its tasks on a queue of its own; others get them after this.
STICKY_TIMEOUT = timedelta(seconds=1)
# One interpreter runs one of them at a time anyway. The usual hundred at once, each loading its
# workflow's modules, starve each other: the SDK fails a task that does not yield within 2 s
# ("TMPRL1101"), as after an outage when all runs come at once (found by `refund drill`).
WORKFLOW_TASKS_AT_ONCE = 2
# Longer than the longest client time-out (the model's 60 s): what was sent gets its answer.
GRACEFUL_SHUTDOWN = timedelta(seconds=70)


@dataclass(frozen=True)
class Activities:
    """All implementations, and their methods as a worker registers them."""

    cases: Cases
    orders: Orders
    agent: Agent
    decisions: Decisions
    payments: StripePayments
    mailer: Mailer
    sweep: Sweep

    @property
    def all(self) -> Sequence[Callable[..., Any]]:
        """Every Activity of `activities.interfaces`, bound to its implementation."""
        return (
            self.cases.read_case,
            self.orders.tell_order_service,
            self.agent.ask_model,
            self.agent.use_tools,
            self.decisions.verify_statement,
            self.payments.make_refund,
            self.payments.read_refund,
            self.mailer.send_mail,
            self.sweep.find_failed_refunds,
            self.sweep.read_addressees,
        )


@asynccontextmanager
async def build_activities(
    settings: Settings, clock: Clock = system_clock
) -> AsyncIterator[Activities]:
    """Connect every adapter as the settings say; all clients are closed at the end.

    Raises:
        SettingsError: what is missing, all of it.
        Misconfigured: the ledger's URL is wrong.
        Unreachable: the ledger cannot be opened.
    """
    if lacks := settings.lacks_for_a_worker():
        raise SettingsError("; ".join(lacks))
    async with AsyncExitStack() as stack:
        watch = DrillWatch(settings.drill_socket) if settings.drill_socket else NoWatch()
        company = await stack.enter_async_context(CompanyClient(settings.company_url))
        ledger = await stack.enter_async_context(
            Ledger(settings.ledger_url.get_secret_value(), clock)
        )
        payments = await stack.enter_async_context(
            StripePayments(
                settings.payment_key,
                None if settings.at_stripe else settings.payments_url,
                clock,
                watch,
            )
        )
        orders, staff = Orders(company, watch), StaffDirectory(company)
        agent = await stack.enter_async_context(
            Agent(
                ModelAccess(
                    settings.model_provider,
                    settings.model,
                    settings.model_key,
                    settings.model_base_url or None,
                ),
                ledger,
                Tools(orders, payments),
                watch,
            )
        )
        mail_server = MailServer(settings.smtp_url.get_secret_value())
        yield Activities(
            cases=Cases(orders, payments, staff, ledger, clock, watch),
            orders=orders,
            agent=agent,
            decisions=Decisions(staff, watch),
            payments=payments,
            mailer=Mailer(
                mail_server, ledger, settings.mail_from, settings.operations, clock, watch
            ),
            sweep=Sweep(payments, ledger, orders),
        )


def build_worker(
    client: Client, settings: Settings, activities: Activities, **overrides: Any
) -> Worker:
    """A worker for the refunds of one environment.

    Args:
        client: Connected, with the `DATA_CONVERTER` of `workers.sandbox`.
        settings: Names the environment that is served.
        activities: From `build_activities`.
        overrides: Arguments of `temporalio.worker.Worker` to use instead of the usual ones.
    """
    arguments: dict[str, Any] = {
        "task_queue": TASK_QUEUE,
        "workflows": WORKFLOWS,
        "activities": activities.all,
        "interceptors": [RefundInterceptor(settings.environment)],
        "workflow_runner": InStep(build_runner(), client),
        "sticky_queue_schedule_to_start_timeout": STICKY_TIMEOUT,
        "max_concurrent_workflow_tasks": WORKFLOW_TASKS_AT_ONCE,
        "graceful_shutdown_timeout": GRACEFUL_SHUTDOWN,
        **_version(settings),
    }
    return Worker(client, **{**arguments, **overrides})


def _version(settings: Settings) -> dict[str, Any]:
    """What the server is told of this worker's code."""
    if not settings.deployment:
        # Else the SDK reads all code again for a digest, half a second of each start.
        return {"build_id": RELEASE}
    version = WorkerDeploymentVersion(settings.deployment, settings.build_id)
    config = WorkerDeploymentConfig(
        version=version,
        use_worker_versioning=True,
        # A run goes on with the newer code at its next step. Pinned to the code that it began with,
        # a refund that waits for a week would keep that code's workers for a week, with all that
        # has been mended since (docs/decisions/0012-worker-versions.md).
        default_versioning_behavior=VersioningBehavior.AUTO_UPGRADE,
    )
    return {"deployment_config": config}
