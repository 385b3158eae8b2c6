"""A server of `/v1/embeddings` on loopback that embeds by words, and misbehaves on demand."""

from __future__ import annotations

import base64
import json
import re
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np


@dataclass(slots=True)
class Behaviour:
    """What the server does next; changed by tests while it runs."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    message: str = "refused"
    dimension: int = 0
    """Of the vectors it answers; 0 obeys `dimensions`."""
    refuses_dimensions: bool = False
    encoding: str = ""
    """`float` ignores the wish for base64."""
    input_characters_max: int = 1_000_000
    shuffled: bool = False
    dropped: int = 0
    misnumbered: bool = False
    key: str = ""
    body: str = ""
    hold: threading.Event | None = None
    requests: list[dict[str, object]] = field(default_factory=list)


def embedded(text: str, dimension: int) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """A vector of the text's words and Chinese characters, on purpose not of length one."""
    vector = np.zeros(dimension, np.float32)
    for word in re.findall(r"[a-z]+|[\u4e00-\u9fff]", text.lower()):
        vector[zlib.crc32(word.encode()) % dimension] += 3.0
    vector[0] += 0.5
    return vector


@contextmanager
def embedding_server() -> Iterator[tuple[str, Behaviour]]:
    """The base URL, and what steers it."""
    behaviour = Behaviour()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            behaviour.requests.append(asked)
            if behaviour.hold is not None:
                behaviour.hold.wait(10)
            if behaviour.status != 200:
                self.answer(behaviour.status, {"error": {"message": behaviour.message}}, behaviour.headers)
            elif behaviour.key and self.headers["Authorization"] != f"Bearer {behaviour.key}":
                self.answer(401, {"error": {"message": f"bad {self.headers['Authorization']}"}}, {})
            elif behaviour.refuses_dimensions and "dimensions" in asked:
                self.answer(400, {"error": {"message": "this model has no dimensions parameter"}}, {})
            elif any(len(text) > behaviour.input_characters_max for text in asked["input"]):
                self.answer(400, {"error": {"message": "This model's maximum context length is 9 tokens"}}, {})
            elif behaviour.body:
                self.send(200, behaviour.body.encode(), {"Content-Type": "application/json"})
            else:
                self.answer(200, {"object": "list", "model": "m", "data": self.rows(asked)}, {})

        def rows(self, asked: dict[str, object]) -> list[dict[str, object]]:
            dimension = behaviour.dimension or asked.get("dimensions") or 8
            rows: list[dict[str, object]] = []
            texts = asked["input"]
            assert isinstance(texts, list)
            assert isinstance(dimension, int)
            for index, text in enumerate(texts):
                vector = embedded(text, dimension)
                wants = behaviour.encoding or asked.get("encoding_format")
                shown: object = vector.tolist()
                if wants == "base64":
                    shown = base64.b64encode(vector.tobytes()).decode()
                number = 0 if behaviour.misnumbered else index
                rows.append({"object": "embedding", "index": number, "embedding": shown})
            rows = rows[: len(rows) - behaviour.dropped]
            return rows[::-1] if behaviour.shuffled else rows

        def answer(self, status: int, body: object, headers: dict[str, str]) -> None:
            self.send(status, json.dumps(body).encode(), {"Content-Type": "application/json", **headers})

        def send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", behaviour
    finally:
        if behaviour.hold is not None:
            behaviour.hold.set()
        server.shutdown()
        thread.join(5)
        server.server_close()
