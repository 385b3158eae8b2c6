"""What every command has: the settings, the brain (joined or started when first needed), and how to print."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gateway.brain import Running, join_or_start
from gateway.cli import output
from gateway.local_client import BrainGoneError, LocalClient
from gateway.operations.json_value import JsonObject, JsonValue
from services.domain.errors import Unavailable
from services.runtime.settings import Settings, load_settings

HTTP_VARIABLE = "FLEETBRAIN_HTTP"
DATA_VARIABLE = "FLEETBRAIN_DATA"


@dataclass(slots=True, kw_only=True)
class Session:
    """One run of the command line."""

    settings: Settings
    environ: Mapping[str, str]
    """For the brain, when this command has to start it."""
    as_json: bool = False
    _running: Running | None = field(default=None, init=False)

    @property
    def running(self) -> Running:
        """The brain; started when none runs."""
        if self._running is None:
            self._running = join_or_start(self.settings.data, self.environ)
            if self._running.started:
                output.message(f"Started the brain of {self.settings.data} (pid {self._running.pid}).")
        return self._running

    @property
    def client(self) -> LocalClient:
        """Calls the brain over its socket."""
        return self.running.client()

    def call(self, operation: str, **arguments: JsonValue) -> JsonObject:
        """The operation's result; notes go to standard error. Arguments that are None are left out."""
        given: JsonObject = {name: value for name, value in arguments.items() if value is not None}
        try:
            reply = self.client.call(operation, given)
        except BrainGoneError as error:
            raise Unavailable(
                "PEER_UNAVAILABLE",
                "the brain went down during the call",
                next_step="Try again: the command starts it anew. Its log is below the data folder.",
            ) from error
        output.notes(reply)
        return reply


def open_session(environ: Mapping[str, str], *, data: str | None, http: str | None, as_json: bool) -> Session:
    """The session of one command, with what its options say over what the environment says.

    Raises:
        InvalidArgument: A setting is wrong.
    """
    chosen = dict(environ)
    if data:
        chosen[DATA_VARIABLE] = str(Path(data).expanduser().absolute())
    if http:
        chosen[HTTP_VARIABLE] = http
    settings = load_settings(chosen)
    return Session(settings=settings, environ=chosen, as_json=as_json)
