"""A headless Chromium, driven by Debian's chromedriver: pictures of pages, and their frame rates."""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

Array = np.ndarray[Any, np.dtype[Any]]

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
SOFTWARE = ("--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")
SOFTWARE_CANVAS = ("--enable-unsafe-swiftshader",)  # the default of Chromium without a graphics card
SIZE = (1280, 720)

COUNTER = """
(() => {
  // A frame counts if the matrices that it was drawn with differ from those of the last one: the camera is at rest, so that
  // the robot is not.
  const gl = WebGL2RenderingContext.prototype, upload = gl.uniformMatrix4fv, draw = gl.drawElements;
  const seen = {frames: 0, drawn: 0, calls: 0, hash: 0, last: 0, since: 0, context: null};
  gl.uniformMatrix4fv = function (where, turned, values, ...rest) {
    for (const x of values) seen.hash = (Math.imul(seen.hash, 31) + (x * 1e6 | 0)) | 0;
    seen.context = this;
    return upload.call(this, where, turned, values, ...rest);
  };
  gl.drawElements = function (...given) { seen.calls += 1; return draw.apply(this, given); };
  const frame = window.requestAnimationFrame.bind(window);
  const tick = () => {
    seen.frames += 1;
    if (seen.calls && seen.hash !== seen.last) { seen.drawn += 1; seen.last = seen.hash; }
    seen.calls = seen.hash = 0;
    frame(tick);
  };
  frame(tick);
  window.countFrames = () => { seen.frames = seen.drawn = 0; seen.since = performance.now(); };
  window.countedFrames = () => {
    const seconds = (performance.now() - seen.since) / 1e3, asked = performance.now();
    const gl = seen.context;
    gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(4));  // waits for what is not drawn yet
    return {frames: seen.frames, drawn: seen.drawn, seconds, behind: (performance.now() - asked) / 1e3,
            width: gl.drawingBufferWidth, height: gl.drawingBufferHeight};
  };
})();
"""


@dataclass(frozen=True)
class Counted:
    """Frames of a page: all, those with a new configuration, the duration [s] and the processor time [s].

    `behind` is the time from the count until the last frames were finished [s].
    """

    frames: int
    drawn: int
    seconds: float
    behind: float
    width: int
    height: int
    processor: float

    @property
    def rate(self) -> float:
        """The number of new configurations drawn per second."""
        return self.drawn / (self.seconds + self.behind)


class Page:
    """A page in the browser."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        self._spent = 0.0

    def open(self, url: str) -> None:
        self.driver.get(url)

    def picture(self) -> Array:
        """Return a picture of the page (height, width, 3) in 0..255."""
        return np.asarray(Image.open(io.BytesIO(self.driver.get_screenshot_as_png())).convert("RGB"))

    def count(self) -> None:
        """Start to count frames."""
        self._spent = self._processor_time()
        self.driver.execute_script("window.countFrames()")

    def counted(self) -> Counted:
        """Return the counts since `count`."""
        found = self.driver.execute_script("return window.countedFrames()")
        return Counted(**found, processor=self._processor_time() - self._spent)

    @contextmanager
    def offline(self) -> Iterator[None]:
        """Run without a network."""
        self.driver.execute_cdp_cmd("Network.enable", {})
        for offline in (True, False):
            limits = {"offline": offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
            self.driver.execute_cdp_cmd("Network.emulateNetworkConditions", limits)
            if offline:
                yield

    def _processor_time(self) -> float:
        """Return the processor time of all processes of the browser [s]."""
        return sum(map(_spent, _family(self.driver.service.process.pid)))


@contextmanager
def chromium(size: tuple[int, int] = SIZE, *options: str) -> Iterator[Page]:
    """Start a headless Chromium that draws in software, with a window of `size` pixels."""
    chosen = webdriver.ChromeOptions()
    chosen.binary_location = CHROMIUM or ""
    for option in (
        "--headless=new",
        "--no-sandbox",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        *(options or SOFTWARE_CANVAS),
    ):
        chosen.add_argument(option)
    driver = webdriver.Chrome(options=chosen, service=Service(DRIVER or ""))
    try:
        screen = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": COUNTER})
        driver.set_page_load_timeout(600)  # a machine may be busy
        driver.set_script_timeout(600)
        yield Page(driver)
    finally:
        driver.quit()


def _family(pid: int) -> Iterator[int]:
    """Yield a process and its descendants."""
    yield pid
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in children.read_text().split():
            yield from _family(int(child))


def _spent(pid: int) -> float:
    """Return the processor time of a process [s], or zero if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
