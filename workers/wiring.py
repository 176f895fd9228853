"""The composition root: settings in, Activities and a worker out. Nothing is wired at import time.

Called by the worker process and by tests alike.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Worker
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

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
from domain.names import TASK_QUEUE
from workers.interceptor import RefundInterceptor
from workers.settings import Settings, SettingsError
from workflows.refund import RefundWorkflow
from workflows.sweep import RefundSweep

DATA_CONVERTER = pydantic_data_converter
# A worker that was killed leaves its tasks on a queue of its own; others get them after this.
STICKY_TIMEOUT = timedelta(seconds=1)
# Longer than the longest client time-out (the model's 60 s): what was sent gets its answer.
GRACEFUL_SHUTDOWN = timedelta(seconds=70)
# Loaded once instead of once per workflow run: pure code, and the Activities' names and models.
PASSED_THROUGH = ("domain", "activities.interfaces")

# The first one is dynamic: it takes a start under any other name too, and refuses it in words.
WORKFLOWS = (RefundWorkflow, RefundSweep)


@dataclass(frozen=True)
class Activities:
    """All implementations, and their methods as a worker registers them."""

    cases: Cases
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
        company = await stack.enter_async_context(CompanyClient(settings.company_url))
        ledger = await stack.enter_async_context(
            Ledger(settings.ledger_url.get_secret_value(), clock)
        )
        payments = await stack.enter_async_context(
            StripePayments(
                settings.payment_key,
                None if settings.at_stripe else settings.payments_url,
                clock,
            )
        )
        orders, staff = Orders(company), StaffDirectory(company)
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
            )
        )
        mail_server = MailServer(settings.smtp_url.get_secret_value())
        yield Activities(
            cases=Cases(orders, payments, staff, ledger, clock),
            agent=agent,
            decisions=Decisions(staff),
            payments=payments,
            mailer=Mailer(mail_server, ledger, settings.mail_from, settings.operations, clock),
            sweep=Sweep(payments, ledger, orders),
        )


def build_worker(
    client: Client, settings: Settings, activities: Activities, **overrides: Any
) -> Worker:
    """A worker for the refunds of one environment.

    Args:
        client: Connected, with `DATA_CONVERTER`.
        settings: Names the environment that is served.
        activities: From `build_activities`.
        overrides: Arguments of `temporalio.worker.Worker` to use instead of the usual ones.
    """
    restrictions = SandboxRestrictions.default.with_passthrough_modules(*PASSED_THROUGH)
    arguments: dict[str, Any] = {
        "task_queue": TASK_QUEUE,
        "workflows": WORKFLOWS,
        "activities": activities.all,
        "interceptors": [RefundInterceptor(settings.environment)],
        "workflow_runner": SandboxedWorkflowRunner(restrictions=restrictions),
        "sticky_queue_schedule_to_start_timeout": STICKY_TIMEOUT,
        "graceful_shutdown_timeout": GRACEFUL_SHUTDOWN,
    }
    return Worker(client, **{**arguments, **overrides})
