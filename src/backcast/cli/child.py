"""The process in which Spark and user code live: `python -m backcast.cli.child FD`.

Reads jobs from standard input, performs them on one control plane and writes messages to the given descriptor. Its own
stdout and stderr belong to user code and the JVM. It must not outlive the command that started it, unless detached.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn, Self

from backcast.cli.checkpoints import performed
from backcast.cli.hearing import Stops, stops
from backcast.cli.protocol import DIFF_SAMPLES, Job, LookVerb, Message, RunVerb, StreamVerb
from backcast.errors import BackcastError
from backcast.model.masking import without_secrets

if TYPE_CHECKING:
    from backcast.control import ControlPlane
    from backcast.model.live import Stop
    from backcast.model.report import OnProgress, Progress

_GRACE_SECONDS = 20.0


def main() -> int:
    messages = int(sys.argv[1])
    # The JVM must not keep the other end waiting after this process has gone.
    os.set_inheritable(messages, False)
    for number in stops():
        signal.signal(number, _stop)
    if os.environ.get("BACKCAST_FAULT"):
        from backcast.testing.faults import arm_from_environment

        arm_from_environment()
    performer = Performer(messages)
    return performer.work(_jobs(performer.busy))


class Performer:
    """Performs jobs one after the other on one control plane, which the first job opens."""

    def __init__(self, messages: int) -> None:
        self._messages = messages
        self._control: ControlPlane | None = None
        self.busy = threading.Event()
        """Set while a job is under way."""

    def work(self, jobs: queue.SimpleQueue[Job | None]) -> int:
        """Until the other end closes or a job is stopped. An error ends one job, not the process."""
        try:
            while (job := jobs.get()) is not None:
                self.busy.set()
                answer = self._answer(job)
                # Before it is sent: who has the answer may close the other end at once, and means no harm by it.
                self.busy.clear()
                self._send(answer)
        except KeyboardInterrupt:
            self.busy.clear()
            with suppress(BrokenPipeError):
                self._send(Message("stopped"))
            return 130
        finally:
            if self._control is not None:
                self._control.world.close()
        return 0

    def _answer(self, job: Job) -> Message:
        try:
            if self._control is None:
                self._control = _opened(job)
            return Message("result", plain(perform(self._control, job, self._progress)))
        except BackcastError as error:
            return Message("error", error.as_dict(), _logged())
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the command must learn of it, whatever it is
            message = without_secrets(f"{type(error).__name__}: {error}")
            return Message("crash", {"message": message}, _logged())

    def _progress(self, progress: Progress) -> None:
        self._send(Message("progress", progress.as_json()))

    def _send(self, message: Message) -> None:
        line = message.line()
        while line:
            line = line[os.write(self._messages, line) :]


def _logged() -> str:
    """The traceback, which is in the log too; a driver's error in it may repeat a catalog's address."""
    trace = without_secrets(traceback.format_exc())
    print(trace, file=sys.stderr, flush=True)
    return trace


def perform(control: ControlPlane, job: Job, on_progress: OnProgress) -> Any:
    """The job's verb on the control plane; documents out."""
    from backcast.model.request import Request

    given = job.arguments
    match job.verb:
        case "plan":
            return control.plan(Request.model_validate(given["request"]), record=given["record"])
        case "gc":
            return control.gc(dry_run=given["dry_run"])
        case "archive":
            asked = {name: given[name] for name in ("offsets", "until", "requested_by")}
            return control.archive(given["topic"], **asked, on_progress=on_progress)
        case "kafka-window" | "verify-witness" | "check" | "gaps" | "late" | "compare" | "doctor":
            return _look(control, job.verb, given)
        case (
            "stream-start"
            | "stream-recovery"
            | "stream-integrity"
            | "stream-recover"
            | "stream-lost-windows"
            | "stream-replay-slice"
        ):
            return _perform_on_stream(control, job.verb, given, on_progress)
        case "checkpoint-verify":
            return control.checkpoint_prove(given["checkpoint"], stateless=given["stateless"])
        case "checkpoint-restore" | "checkpoint-fork" | "checkpoint-rewind":
            return performed(control, job.verb, given)
        case _:
            return _perform_on_run(control, job.verb, given, on_progress)


def _look(control: ControlPlane, verb: LookVerb, given: dict[str, Any]) -> Any:
    from backcast.model.request import Request

    match verb:
        case "kafka-window":
            return control.kafka_window(given["topic"], given["event_time"], to_end=given["to_end"])
        case "verify-witness":
            return control.witnesses(given["dataset"], given["run"], tuple(given["versions"]))
        case "check":
            return control.check(given["dataset"], start=given["start"], end=given["end"])
        case "gaps":
            return control.gaps(**{**given, "why": Request.model_validate(given["why"])})
        case "late":
            return control.late(**{**given, "why": Request.model_validate(given["why"])})
        case "compare":
            return control.compare(**given)
        case "doctor":
            return control.doctor()


def _perform_on_stream(control: ControlPlane, verb: StreamVerb, given: dict[str, Any], on_progress: OnProgress) -> Any:
    from backcast.model.recovery import Recovery

    match verb:
        case "stream-start":
            with Signals(lambda: _ignore_stops(control)) as heard:
                return control.stream_start(**given, asked=heard, on_progress=on_progress)
        case "stream-recovery":
            return control.stream_recovery(given["name"])
        case "stream-integrity":
            return control.stream_integrity(given["name"], Recovery.model_validate(given["found"]))
        case "stream-lost-windows":
            return control.stream_lost_windows(given["name"], Recovery.model_validate(given["found"]).lacking)
        case "stream-replay-slice":
            return control.stream_replay_slice(**given, on_progress=on_progress)
        case "stream-recover":
            found = Recovery.model_validate(given["found"])
            how = {key: given[key] for key in ("without_state", "stopped")}
            return control.stream_recover(given["name"], found, **how)


def _perform_on_run(control: ControlPlane, verb: RunVerb, given: dict[str, Any], on_progress: OnProgress) -> Any:
    from backcast.model.canary import Canary

    run_id = given["run_id"]
    match verb:
        case "run":
            first = given.get("canary")
            canary = None if first is None else Canary.model_validate(first)
            told = {name: given.get(name, False) for name in ("yes", "hold")}
            return control.run(run_id, on_progress, canary=canary, **told)
        case "worker":
            return control.work(run_id, on_progress)
        case "watch":
            return control.watch(run_id, once=given["once"], every=given["every"], on_progress=on_progress)
        case "retry":
            return control.retry(run_id, on_progress)
        case "validate":
            return control.validate(run_id)
        case "diff":
            return control.diff(run_id, samples=given.get("samples", DIFF_SAMPLES))
        case "quarantine-show":
            return control.quarantined_records(run_id, limit=given["limit"])
        case "quarantine-retry":
            why = {name: given[name] for name in ("reason", "ticket", "requested_by")}
            return control.retry_request(run_id, **why)
        case "publish":
            return control.publish(run_id, on_progress, yes=given.get("yes", False))
        case "undo":
            return control.undo(run_id, rewrite=given["rewrite"], on_progress=on_progress)
        case "cancel":
            return control.cancel(run_id)


def plain(answer: Any) -> Any:
    """A document, or a list of them, as JSON values."""
    return [each.as_json() for each in answer] if isinstance(answer, list | tuple) else answer.as_json()


def _opened(job: Job) -> ControlPlane:
    from backcast.project.api import open_project

    return open_project(job.project, profile=job.profile)


def _jobs(busy: threading.Event) -> queue.SimpleQueue[Job | None]:
    """Jobs as they arrive; None at the end. When the end comes while a job is under way, nobody waits for it: stop."""
    waiting: queue.SimpleQueue[Job | None] = queue.SimpleQueue()

    def listen() -> None:
        detached = False
        # Unbuffered: a buffer's lock, held by this thread, would abort the interpreter when it ends meanwhile.
        for line in open(0, "rb", buffering=0, closefd=False):  # noqa: SIM115 - not ours to close
            job = Job.read(line)
            detached = detached or job.detached
            waiting.put(job)
        waiting.put(None)
        if not detached:
            _leave(busy)

    threading.Thread(target=listen, name="jobs", daemon=True).start()
    return waiting


def _leave(busy: threading.Event) -> NoReturn:
    """Stop the job that is under way, and end by force when that, or closing, takes too long."""
    deadline = time.monotonic() + _GRACE_SECONDS
    stopped = False
    while time.monotonic() < deadline:
        if busy.is_set() and not stopped:
            stopped = True
            os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.1)
    os._exit(1)


class Signals:
    """While a stream runs, the first stop asks it to end behind its batch, the second in the middle of it."""

    def __init__(self, begin: Callable[[], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._begin = begin
        self._stops = Stops(clock)
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def __call__(self) -> Stop | None:
        """Listens from the first call on: Spark, which starts before it, puts a handler of its own in place."""
        from backcast.model.live import Stop

        if not self._before and threading.current_thread() is threading.main_thread():
            self._begin()
            for number in (*stops(), signal.SIGINT):
                self._before[number] = signal.signal(number, self._hear)
        return (None, Stop.BOUNDARY, Stop.NOW)[min(self._stops.heard, 2)]

    def _hear(self, _signal: int, _frame: object) -> None:
        self._stops.hear()


def _ignore_stops(control: ControlPlane) -> None:
    """The JVM of a stream ends when this process does, and not before its batch is committed."""
    from backcast.spark.gateway import jvm_errors
    from backcast.spark.processes import ignore_stops

    with jvm_errors("starting a stream"):
        ignore_stops(control.world.spark())


def _stop(_signal: int, _frame: object) -> NoReturn:
    for number in stops():
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
