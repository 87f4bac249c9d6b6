# SPDX-License-Identifier: Apache-2.0
"""Debian's Chromium without a window and without a network, spoken to through DevTools on two pipes."""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest

TIMEOUT_S = 120

FLAGS = (
    "--headless=new",
    "--no-sandbox",  # the tests run as root, often in a container
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--proxy-server=127.0.0.1:9",  # where nobody listens
)


class Chromium:
    """One browser. Complaints of the pages and what they ask the network for are collected."""

    def __init__(self, profile: Path):
        program = shutil.which("chromium")
        if program is None:
            pytest.fail("chromium is missing: apt-get install --no-install-recommends chromium")
        to_read, self.to_write = os.pipe()
        self.from_read, from_write = os.pipe()

        def move_pipes():  # Chromium reads descriptor 3 and writes 4
            reading, writing = os.dup(to_read), os.dup(from_write)
            os.dup2(reading, 3)
            os.dup2(writing, 4)

        self.process = subprocess.Popen(
            [program, *FLAGS, "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=move_pipes,
            close_fds=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": str(profile)},
        )
        os.close(to_read)
        os.close(from_write)
        self.rest = b""
        self.number = 0
        self.session = None
        self.events: list[dict] = []

    def close(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.to_write)
        os.close(self.from_read)

    def receive(self, deadline: float) -> dict:
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.from_read], [], [], max(0.0, deadline - time.monotonic()))
            data = os.read(self.from_read, 1 << 20) if ready else b""
            assert data, "Chromium says nothing any more" if ready else f"Chromium took more than {TIMEOUT_S} s"
            self.rest += data
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def send(self, method: str, **parameters) -> dict:
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to_write, data) :]
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            answer = self.receive(deadline)
            if answer.get("id") == self.number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self.events.append(answer)

    def wait_for(self, event: str) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while not any(each.get("method") == event for each in self.events):
            self.events.append(self.receive(deadline))

    def open(self, path: Path, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """A new page with this file, loaded and drawn."""
        self.session = None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        self.events.clear()
        self.send("Page.navigate", url=path.resolve().as_uri())
        self.wait_for("Page.loadEventFired")
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def evaluate(self, expression: str):
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def complaints(self) -> list[str]:
        """Errors and warnings of the console, exceptions, what the policy refused, dialogs."""
        self.evaluate("1")
        found = []
        for event in self.events:
            method, parameters = event.get("method", ""), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(json.dumps(parameters["exceptionDetails"]))
            elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
                found.append(json.dumps(parameters["args"]))
            elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
                found.append(parameters["entry"]["text"])
            elif method == "Page.javascriptDialogOpening":
                found.append("a dialog: " + parameters["message"])
        return found

    def requests(self) -> list[str]:
        return [
            event["params"]["request"]["url"]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        ]

    def screenshot(self, path: Path, whole: bool = True) -> Path:
        answer = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))
        return path

    def pdf(self) -> bytes:
        return base64.b64decode(self.send("Page.printToPDF", printBackground=False)["data"])
