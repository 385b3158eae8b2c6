"""What callers ask for, checked against the limits of the contract. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from services.domain.context import OperationContext, Scope
from services.domain.errors import InvalidArgument, PermissionDenied
from services.jobs.kinds import Kind, invalid, read_data
from services.jobs.states import JobRecord, State

QUEUE_NAME: Final = re.compile(r"[a-z0-9-]{1,64}")
REQUEST_ID: Final = re.compile(r"[!-~]([ -~]{0,34}[!-~])?")
"""1 to 36 printable ASCII characters, without spaces around them."""
DEFAULT_QUEUE: Final = "default"
PRIORITY_MAX: Final = 100
ATTEMPTS_DEFAULT: Final = 3
ATTEMPTS_MAX: Final = 100
DELAY_MAX: Final = timedelta(days=30)
TIMEOUT_DEFAULT: Final = timedelta(hours=1)
TIMEOUT_MAX: Final = timedelta(hours=24)


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A request for a job, checked, with every default filled in."""

    name: str
    data: str
    queue: str
    priority: int
    max_attempts: int
    delay: timedelta
    timeout: timedelta
    request_id: str

    @property
    def digest(self) -> bytes:
        """Equal for requests that ask for the same."""
        return digest(
            self.name,
            self.data,
            self.queue,
            self.priority,
            self.max_attempts,
            self.delay.total_seconds(),
            self.timeout.total_seconds(),
        )

    def begin(self, job_id: int, *, principal: str, now: datetime) -> JobRecord:
        """The record of a job that this request makes."""
        return JobRecord(
            job_id=job_id,
            name=self.name,
            data=self.data,
            queue=self.queue,
            state=State.DELAYED if self.delay else State.WAITING,
            priority=self.priority,
            max_attempts=self.max_attempts,
            submitted_by=principal,
            create_time=now,
            update_time=now,
            delay_until=now + self.delay if self.delay else None,
            timeout=self.timeout,
            request_id=self.request_id,
        )


def read_submission(
    kinds: Mapping[str, Kind],
    *,
    name: str,
    data_json: str,
    queue: str,
    priority: int,
    max_attempts: int,
    delay: timedelta,
    timeout: timedelta | None,
    request_id: str,
) -> Submission:
    """The request, checked.

    Raises:
        InvalidArgument: Naming the field, its value and what would be right.
    """
    kind = kinds.get(name.strip())
    if kind is None:
        raise invalid("no job kind has this name", "name", name, f"Use one of: {', '.join(kinds)}.")
    if queue and not QUEUE_NAME.fullmatch(queue):
        step = "Use at most 64 lower-case ASCII letters, digits and `-`, or leave it out."
        raise field_invalid("this is no name of a queue", "queue", queue, step)
    if abs(priority) > PRIORITY_MAX:
        raise field_invalid("a priority is from -100 to 100", "priority", priority, "Use 0, or less for urgent work.")
    if not 0 <= max_attempts <= ATTEMPTS_MAX:
        raise field_invalid("a job has 1 to 100 attempts", "max_attempts", max_attempts, "Leave it out for 3.")
    if not timedelta(0) <= delay <= DELAY_MAX:
        raise field_invalid("a delay is from 0 to 30 days", "delay", delay, "Submit it later.")
    if timeout is not None and not timedelta(0) < timeout <= TIMEOUT_MAX:
        raise field_invalid("a run may take up to 24 hours", "timeout", timeout, "Leave it out for 1 hour.")
    check_request_id(request_id)
    return Submission(
        name=name.strip(),
        data=read_data(kind, data_json),
        queue=queue or DEFAULT_QUEUE,
        priority=priority,
        max_attempts=max_attempts or ATTEMPTS_DEFAULT,
        delay=delay,
        timeout=timeout or TIMEOUT_DEFAULT,
        request_id=request_id,
    )


def check_request_id(request_id: str) -> None:
    """Raises InvalidArgument unless it is one."""
    if not request_id:
        raise InvalidArgument(
            "FIELD_REQUIRED", "a request_id is needed", field="request_id", next_step="Send a new random UUID."
        )
    if not REQUEST_ID.fullmatch(request_id):
        step = "Send 1 to 36 printable ASCII characters, such as a random UUID."
        raise field_invalid("this is no request_id", "request_id", request_id, step)


def check_allowed(context: OperationContext, kind: Kind, name: str) -> None:
    """Raises PermissionDenied unless the caller may submit jobs of this kind."""
    context.require(Scope.ADMIN)
    if kind.protected and context.remote:
        raise PermissionDenied(
            "JOB_DENIED",
            f"jobs of the kind {name!r} are submitted on the brain's own machine only",
            field="name",
            value=name,
            next_step="Submit it with the command line there.",
        )


def same_work(record: JobRecord) -> bytes:
    """Equal for jobs that would do the same: what coalescing compares."""
    return digest(record.queue, record.name, record.data)


def digest(*parts: str | float) -> bytes:
    """SHA-256 over the parts, each kept apart from the next."""
    return hashlib.sha256(json.dumps(parts).encode()).digest()


def field_invalid(message: str, field: str, value: object, next_step: str) -> InvalidArgument:
    """The refusal of a value that is never allowed."""
    return InvalidArgument("FIELD_INVALID", message, field=field, value=value, next_step=next_step)
