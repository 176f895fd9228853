"""Take the README's picture: the demo's run, finished, in the Temporal Web UI.

`make screenshot`. It plays the demo with its kills, so the picture shows what the README tells.
"""

import asyncio
import shutil
import sys
import tempfile
from pathlib import Path

from playwright.async_api import FloatRect, Locator, Page, ViewportSize, async_playwright, expect

from domain.names import workflow_id
from starters import books, screen
from starters.demo import Story
from starters.folder import Folder
from tests.world import temporal_program

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "refund-8890.png"
_QUIET = (
    "--disable-background-networking --disable-component-update --disable-gpu --disable-sync "
    "--no-first-run"
)
# As root, Chromium runs without its sandbox only; it opens nothing but the local Web UI.
_ARGUMENTS = [*_QUIET.split(), "--no-sandbox"]
# Wide enough that the dates in the run's head are not cut, high enough for the whole timeline.
_SIZE: ViewportSize = {"width": 1480, "height": 1250}
_MARGIN = 14
# The axis with its times.
_BELOW_LAST_ROW = 95
_PATIENCE_MS = 30_000
# The last step of the story: once its row is drawn, all are.
_LAST_ROW = "Mail: refunded"


async def main() -> None:
    """Play the story, take the picture, end what was started."""
    browser = shutil.which("chromium")
    if browser is None:
        sys.exit("chromium is not installed; on Debian: apt install chromium")
    with tempfile.TemporaryDirectory(prefix="refund-screenshot-") as data:
        folder = Folder(Path(data))
        with folder.hold() as lock:
            story = Story(folder, lock, Path(temporal_program()))
            try:
                await story.play()
                url = story.installation.links.of_run(workflow_id(books.ORDER))
                await take_picture(browser, url)
            finally:
                await story.installation.stop()
    screen.say(f"{PICTURE}: {PICTURE.stat().st_size:,} bytes")


async def take_picture(browser: str, url: str) -> None:
    """Open the run's page and save what tells the story: its head and its timeline."""
    async with async_playwright() as playwright:
        chromium = await playwright.chromium.launch(executable_path=browser, args=_ARGUMENTS)
        context = await chromium.new_context(
            viewport=_SIZE, timezone_id="UTC", locale="en-GB", reduced_motion="reduce"
        )
        context.set_default_timeout(_PATIENCE_MS)
        page = await context.new_page()
        await page.goto(url)
        await show_timeline(page)
        main_part = await box(page.locator("main"))
        title = await box(page.get_by_role("heading", name=workflow_id(books.ORDER)))
        last = await box(page.get_by_text(_LAST_ROW))
        top, bottom = title["y"] - _MARGIN, last["y"] + last["height"] + _BELOW_LAST_ROW
        clip: FloatRect = {**main_part, "y": top, "height": bottom - top}
        await page.screenshot(path=PICTURE, clip=clip, animations="disabled")
        await chromium.close()


async def box(part: Locator) -> FloatRect:
    """Where a part is drawn, in pixels of the page.

    Raises:
        ValueError: it is not drawn.
    """
    drawn = await part.bounding_box()
    if drawn is None:
        raise ValueError(f"{part} is not drawn")
    return drawn


async def show_timeline(page: Page) -> None:
    """Wait until every row is drawn, and have the first step on top."""
    await expect(page.get_by_text(_LAST_ROW)).to_be_visible(timeout=_PATIENCE_MS)
    await page.get_by_role("button", name="Descending").click()
    await expect(page.get_by_role("button", name="Ascending")).to_be_visible()
    await expect(page.get_by_text(_LAST_ROW)).to_be_visible()


if __name__ == "__main__":
    asyncio.run(main())
