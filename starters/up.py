"""`refund up`: server, company and worker in the foreground, on a folder that keeps their data."""

import os
import shlex
import shutil
import sys
from pathlib import Path

from domain import names
from starters import screen
from starters.connect import find_target
from starters.folder import Folder
from starters.installation import Installation, find_temporal
from starters.interrupts import ending, unless
from workers.settings import Settings


async def up(settings: Settings, data: Path | None, temporal: Path | None) -> None:
    """Run everything until Ctrl-C, and end what was started and only that.

    Raises:
        CommandError: the folder is in use, something did not start, or ended by itself.
    """
    folder = Folder((data or settings.data_dir).absolute())
    program = find_temporal(temporal)
    with folder.hold() as lock, ending() as ended:
        installation = Installation(
            folder, lock, program, environment=os.environ, usual_ports=True, say=screen.say
        )
        try:
            await unless(ended, _run(installation, settings, folder))
        finally:
            screen.hint("Stopping: what was started is ended, the data stays.")
            await installation.stop()


async def _run(installation: Installation, settings: Settings, folder: Folder) -> None:
    await installation.start()
    links = installation.links
    screen.say("")
    screen.say(f"Web UI    {links.web_ui}/namespaces/default/workflows")
    screen.say(f"mailbox   {links.mailbox}")
    screen.say(f"sweep     {links.of_schedule(names.sweep_id(settings.environment))}")
    screen.say(f"data      {folder.path}")
    screen.say("")
    if folder.path != settings.data_dir.absolute():
        screen.say(f"For the other commands:  export NORTHWIND_DATA_DIR={folder.path}")
    target = find_target(settings)
    if target.address != links.temporal:
        screen.say(f"Note: other commands go to {target.address}, as {target.said_by} says.")
    if moved := installation.moved:
        ports = ", ".join(f"{name} at {port}, not {usual}" for name, (port, usual) in moved.items())
        screen.say(f"Note: usual ports were taken, now or at the first start: {ports}.")
    screen.say(f'Try:      {own_command()} start --order 8891 --message "It came broken." --wait')
    screen.say("Ctrl-C ends it.")
    await installation.until_one_ends()


def own_command() -> str:
    """How to type this command here: by its name, or by its path where it is not on the PATH."""
    beside = Path(sys.executable).with_name("refund")
    if shutil.which("refund") is not None or not beside.exists():
        return "refund"
    return shlex.quote(str(beside))
