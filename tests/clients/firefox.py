"""Firefox for the tests of the page, by WebDriver BiDi: as much of a page of Playwright as these tests need.

Playwright drives a Firefox of its own, and not that of a system.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from contextlib import ExitStack

import pytest

FIREFOX = os.environ.get("FIREFOX") or next(filter(None, map(shutil.which, ("firefox-esr", "firefox"))), None)
# keys by the names of Playwright
KEYS = {
    "PageUp": "\ue00e",
    "PageDown": "\ue00f",
    "End": "\ue010",
    "Home": "\ue011",
    "ArrowLeft": "\ue012",
    "ArrowUp": "\ue013",
    "ArrowRight": "\ue014",
    "ArrowDown": "\ue015",
    "Control": "\ue009",
    "Shift": "\ue008",
    "Escape": "\ue00c",
}


class Firefox:
    """A page in a headless Firefox with a profile of its own."""

    def __init__(self, profile):
        connect = pytest.importorskip("websockets.sync.client").connect
        if FIREFOX is None:
            pytest.skip("Firefox is not installed (or name it in FIREFOX)")
        command = [FIREFOX, "--headless", "--profile", str(profile), "--remote-debugging-port", "0"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=(profile / "log").open("w"))
        address = self.address(profile / "log")
        if address is None:
            self.process.terminate()
            pytest.skip("Firefox does not speak WebDriver BiDi")
        self.opened = ExitStack()
        self.socket = self.opened.enter_context(connect(f"{address}/session", max_size=None))
        self.sent = 0
        self.errors: list[str] = []
        self.call("session.new", capabilities={})
        self.call("session.subscribe", events=["log.entryAdded"])
        self.context = self.call("browsingContext.getTree")["contexts"][0]["context"]
        self.call("browsingContext.setViewport", context=self.context, viewport={"width": 1200, "height": 1000})
        self.keyboard = self

    def address(self, log):
        """Return where Firefox listens, or None if it has ended."""
        deadline = time.monotonic() + 60
        while self.process.poll() is None and time.monotonic() < deadline:
            for line in log.read_text().splitlines():
                if "WebDriver BiDi listening" in line:
                    return line.split()[-1]
            time.sleep(0.05)
        return None

    def call(self, method, **parameters):
        """Call a method of WebDriver BiDi; errors of scripts are collected meanwhile."""
        self.sent += 1
        self.socket.send(json.dumps({"id": self.sent, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self.socket.recv(timeout=60))
            if answer.get("method") == "log.entryAdded" and answer["params"]["level"] == "error":
                self.errors.append(answer["params"]["text"])
            if answer.get("id") == self.sent:
                assert answer["type"] == "success", answer
                return answer["result"]

    def goto(self, address):
        """Load a page."""
        self.call("browsingContext.navigate", context=self.context, url=address, wait="complete")

    def reload(self):
        """Load the page again."""
        self.call("browsingContext.reload", context=self.context, wait="complete")

    def evaluate(self, expression, argument=None):
        """Return the value of an expression, or what a function makes of an argument."""
        script = f"(async (made) => JSON.stringify(typeof made === 'function' ? await made({json.dumps(argument)}) : await made))({expression})"
        target = {"context": self.context}
        answer = self.call("script.evaluate", expression=script, target=target, awaitPromise=True)
        assert answer["type"] == "success", answer["exceptionDetails"]["text"]
        return json.loads(answer["result"].get("value", "null"))

    def wait_for_timeout(self, milliseconds):
        """Wait."""
        time.sleep(milliseconds / 1000)

    def press(self, keys):
        """Press a key, or several as in Shift+ArrowLeft."""
        values = [KEYS.get(key, key) for key in keys.split("+")]
        actions = [{"type": "keyDown", "value": value} for value in values]
        actions += [{"type": "keyUp", "value": value} for value in reversed(values)]
        self.perform({"type": "key", "id": "keyboard", "actions": actions})

    def wheel(self, x, y, by):
        """Turn the wheel at a point."""
        turn = {"type": "scroll", "x": x, "y": y, "deltaX": 0, "deltaY": by}
        self.perform({"type": "wheel", "id": "wheel", "actions": [turn]})

    def click(self, x, y, button=0):
        """Click at a point with the left button, or the right one, which is 2."""
        actions = [
            {"type": "pointerMove", "x": x, "y": y},
            {"type": "pointerDown", "button": button},
            {"type": "pointerUp", "button": button},
        ]
        self.perform({"type": "pointer", "id": "mouse", "actions": actions})

    def perform(self, actions):
        """Perform actions of one device."""
        self.call("input.performActions", context=self.context, actions=[actions])

    def close(self):
        """End Firefox."""
        self.opened.close()
        self.process.terminate()
        self.process.wait()


@pytest.fixture(scope="module")
def firefox(tmp_path_factory):
    """Yield a page in Firefox."""
    page = Firefox(tmp_path_factory.mktemp("firefox"))
    yield page
    page.close()
