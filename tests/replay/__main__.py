"""`python -m tests.replay`: the gate alone, against the code of the current folder."""

import asyncio
import json
import sys

from starters import screen
from tests.replay.gate import judge_all
from tests.replay.saved import releases, wanted


async def main(names: list[str]) -> None:
    """Print what is wrong with the named histories, or with all, as JSON."""
    saved = [one for release in releases() for one in wanted(release)]
    chosen = [one for one in saved if not names or one.name in names]
    found = {str(one): wrong for one, wrong in (await judge_all(chosen)).items()}
    screen.say(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
