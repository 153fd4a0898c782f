"""The app in a process of its own, and what a stranger can do to it over HTTP."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from support.memory import resident
from support.paths import ROOT
from support.ports import free_port
from support.shared import missing

from vit_demo.embedded import embedded

MARK = {"meta": {"_type": "gradio.FileData"}}
INSIDE = re.compile(
    r"Traceback|site-packages|\.py\b|<class|Exception|/tmp/|" + re.escape(str(ROOT))
)


class App:
    """The app in a process of its own, and what a stranger can do to it over HTTP."""

    def __init__(self, folder: Path, *arguments: str):
        for name in ("vit-photos", "vit-mnist"):
            if name not in embedded():
                missing(f"assets/{name}.safetensors is not here")
        nowhere = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(folder / "hub")}
        nowhere |= {"VIT_DEMO_WEIGHTS": str(folder), "PYTHONUNBUFFERED": "1"}
        self.log = folder / "log.txt"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "app.py", "--device", "cpu", "--port", str(free_port()), *arguments],
                cwd=ROOT, env=os.environ | nowhere, stdout=subprocess.PIPE, stderr=log, text=True,
            )  # fmt: skip
        for line in self.process.stdout:
            if line.startswith("Ready: "):
                self.url = line.split()[1].rstrip("/")
                break
        else:
            pytest.fail(f"the app did not start:\n{self.log.read_text()}")
        self.client = httpx.Client(timeout=120, limits=httpx.Limits(max_keepalive_connections=0))

    def get(self, path: str) -> httpx.Response:
        return self.client.get(self.url + path, follow_redirects=True)

    def upload(self, name: str, data: bytes) -> str:
        answer = self.client.post(f"{self.url}/gradio_api/upload", files={"files": (name, data)})
        assert answer.status_code == 200, answer.text
        return answer.json()[0]

    def call(self, name: str, data: list | str) -> tuple[str, object]:
        """What a program gets: ("complete", results) or ("error", a sentence)."""
        body = data if isinstance(data, str) else json.dumps({"data": data})
        address, head = f"{self.url}/gradio_api/call/{name}", {"content-type": "application/json"}
        answer = self.client.post(address, content=body, headers=head)
        if answer.status_code != 200:
            return "refused", answer.text
        text = self.client.get(f"{address}/{answer.json()['event_id']}").text
        event, found = re.findall(r"event: (\w+)\ndata: (.*)\n", text)[-1]
        found = json.loads(found)
        return event, found["error"] if event == "error" else found

    def event(self, number: int, data: list, event_data: object = None) -> dict:
        """What the page itself does: an event by its number, whether it has a name or not."""
        session = os.urandom(6).hex()
        body = {"data": data, "fn_index": number, "session_hash": session, "trigger_id": None}
        body["event_data"] = event_data
        head = {"content-type": "application/json"}
        answer = self.client.post(
            f"{self.url}/gradio_api/queue/join", content=json.dumps(body), headers=head
        )
        if answer.status_code != 200:
            return {"success": False, "output": answer.json()}
        text = self.get(f"/gradio_api/queue/data?session_hash={session}").text
        messages = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]
        return next(m for m in messages if m["msg"] == "process_completed")

    def memory(self) -> int:
        return resident(self.process.pid)

    def stop(self) -> None:
        self.client.close()
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.communicate(timeout=30)
        finally:
            self.process.kill()


def sentence(text: object) -> bool:
    """Words for a person, and nothing from the inside."""
    fine = isinstance(text, str) and 15 < len(text) < 400 and "\n" not in text
    return fine and not INSIDE.search(text)
