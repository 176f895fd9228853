"""The data folder of `refund up`: its lock, its links, its logs."""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from starters.errors import CommandError, Exit

# How long what a killed `refund up` left behind may take to end: the server needs up to 4 s.
_LEFTOVERS_SECONDS = 10.0


@dataclass(frozen=True)
class Links:
    """Where the parts of a local installation are."""

    temporal: str
    """Host and port."""
    web_ui: str
    company: str
    smtp: str

    def of_run(self, workflow_id: str) -> str:
        """The run's page in the Temporal Web UI."""
        return f"{self.web_ui}/namespaces/default/workflows/{workflow_id}"

    def of_schedule(self, schedule_id: str) -> str:
        """The page of a Schedule in the Temporal Web UI."""
        return f"{self.web_ui}/namespaces/default/schedules/{schedule_id}"

    @property
    def mailbox(self) -> str:
        """The company's mailbox, as a page."""
        return f"{self.company}/mailbox"


class Folder:
    """Names of what lies in a data folder, and who may use it."""

    def __init__(self, path: Path) -> None:
        """Take the folder; it need not exist yet."""
        self.path = path
        self.links_file = path / "connection.json"
        self.temporal_database = path / "temporal.db"
        self.logs = path / "logs"
        self._lock_file = path / "up.lock"

    def log(self, name: str) -> Path:
        """The log of one process."""
        return self.logs / f"{name}.log"

    def output(self, name: str) -> Path:
        """What one process printed since its last start, such as that it is ready."""
        return self.logs / f"{name}.out"

    def read_links(self) -> Links | None:
        """The addresses of the last `refund up` here; None where there was none."""
        try:
            return Links(**json.loads(self.links_file.read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def write_links(self, links: Links) -> None:
        """Tell the other commands of this folder, and the next `refund up`, the addresses."""
        half = self.links_file.with_suffix(".tmp")
        half.write_text(json.dumps(asdict(links), indent=2) + "\n")
        half.replace(self.links_file)

    @contextmanager
    def hold(self) -> Iterator[int]:
        """Hold the folder; the descriptor is for the children to hold it too.

        Where this process is killed, the folder thus stays held until the last of them has ended
        and no longer writes to the databases.

        Raises:
            CommandError: somebody else holds it.
        """
        # Letters, mails and keys are nobody else's; a folder that is there keeps its mode.
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.logs.mkdir(mode=0o700, exist_ok=True)
        with self._lock_file.open("a+") as file:
            self._lock(file.fileno())
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            yield file.fileno()

    def _lock(self, descriptor: int) -> None:
        give_up = time.monotonic() + _LEFTOVERS_SECONDS
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = self._lock_file.read_text().strip()
                if _is_alive(holder) or time.monotonic() > give_up:
                    raise CommandError(
                        f"{self.path} is in use (process {holder})", Exit.ALREADY_RUNNING
                    ) from None
                time.sleep(0.1)
            else:
                return


def _is_alive(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except (ValueError, ProcessLookupError):
        return False
    except PermissionError:
        return True
    return True
