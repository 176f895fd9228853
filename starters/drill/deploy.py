"""A deploy in the middle of a drill: workers begin with another release's code, and end with ours.

It goes forward only, as a rolling deploy does: each worker is asked to end, and its next one has
the new code. A worker that is killed comes back with the code of the moment.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

from starters import processes
from starters.drill import nursery
from starters.drill.course import places, waits
from starters.drill.kinds import kinds
from starters.drill.plan import AT_START, AT_WAIT, Plan, Process, Step
from starters.errors import CommandError, Exit
from starters.folder import Folder
from starters.processes import Child

# Of the plans of a site, each with a deploy of its own, so many come to it before it is done. Those
# that began before have then spread over all their places, and the others begin on the new code.
_SHARE = 3


class Code:
    """The code of a site's workers."""

    def __init__(self, older: Path | None = None, plans: int = 1) -> None:
        """Begin with a release.

        Args:
            older: The folder of its code; None: the code that is here, from the first worker on.
            plans: How many want a deploy.
        """
        self._older = older
        self._asked, self._due = 0, max(1, plans // _SHARE)

    def is_due(self) -> bool:
        """Whether the deploy that is asked for comes now, which is true once."""
        self._asked += 1
        return self._older is not None and self._asked == self._due

    def renew(self) -> None:
        """Start workers with the code that is here from now on."""
        self._older = None

    async def start(
        self,
        name: str,
        folder: Folder,
        command: Sequence[str],
        environment: Mapping[str, str],
        lock: int,
    ) -> Child:
        """Start a process as `nursery.start` does, and a worker with the code of the moment."""
        if self._older is None or not name.startswith(Process.WORKER):
            return await nursery.start(name, folder, command, environment, lock)
        path = f"{self._older}{os.pathsep}{environment['PYTHONPATH']}"
        return await processes.start(
            name, folder, command, {**environment, "PYTHONPATH": path}, lock
        )


def find_older(folder: Path) -> Path:
    """The folder of a release's code.

    Raises:
        CommandError: it holds none.
    """
    if not all((folder / name / "__init__.py").is_file() for name in ("workers", "workflows")):
        words = f"{folder} holds no release: there are no workers and workflows in it"
        raise CommandError(words, Exit.USAGE)
    return folder.absolute()


def with_deploy(plan: Plan, seed: int, number: int) -> Plan:
    """A drawn plan with one thing more: a deploy at a place of its own."""
    random = Random(f"{seed}/{number}/deploy")  # noqa: S311 - repeatable, not secret
    where = [AT_START, *([AT_WAIT] * 3 if waits(plan) else []), *places(plan)]
    step = Step(at=random.choice(where), do="deploy", who=(Process.WORKER,))
    changed = plan.model_copy(update={"steps": (*plan.steps, step)})
    return changed.model_copy(update={"name": ", ".join(kinds(changed))})
