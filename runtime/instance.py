"""One loaded plugin: a queue, the thread that serves it, the worker behind it. Leaves every decision to pure code."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from manifests.batching import BatchPolicy
from manifests.errors import LimitReached, PluginFailed, QuarantinedPlugin, UsageError, WorkerDied
from manifests.manifest import Manifest
from runtime import answers, arena, batcher, declared, lifecycle
from runtime.batcher import Hold, Seal, Waiting
from runtime.counters import Counters
from runtime.declared import TensorFacts
from runtime.lifecycle import CrashBudget, Event, State
from runtime.process import Handshake, Launch, WorkerProcess

if TYPE_CHECKING:
    import torch

MAX_QUEUE = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Blueprint:
    """What an instance is made of. `prepare` verifies the plugin anew for each start; `record` notes a start."""

    manifest: Manifest
    device: str
    policy: BatchPolicy
    start_seconds: float
    call_seconds: float | None
    effective: dict[str, Any]
    prepare: Callable[[], Launch]
    record: Callable[[Handshake], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    tensors: tuple["torch.Tensor", ...]
    future: "Future[Any]"
    waiting: Waiting


class Instance:
    """A plugin on one device. Calling it is safe from any thread.

    `instance(x)` runs and waits; `instance.submit(x)` gives a future. Tensors must not change before it is done.
    A future's callbacks run in the instance's own thread: they must not wait for another call of it.
    `marks` show others that its plugins are run; it takes them over, and closes them when its worker is gone.
    """

    def __init__(self, blueprint: Blueprint, marks: ExitStack) -> None:
        self._blueprint = blueprint
        self._lock = threading.Condition()
        self._queue: list[_Call] = []
        self._counters = Counters()
        self._state = State.STOPPED
        self._budget = CrashBudget()
        self._worker: WorkerProcess | None = None
        self._handshake: Handshake | None = None
        self._run_record: str | None = None
        self._not_ended: WorkerDied | None = None
        self._started: Future[None] = Future()
        # The worker lives no longer than the thread that starts it, so one thread does all for as long as we live.
        self._thread = threading.Thread(target=self._serve, name=f"spm-{blueprint.manifest.name}", daemon=True)
        self._marks = marks.pop_all()
        try:
            self._thread.start()
        except BaseException:
            self._marks.close()
            raise

    @property
    def name(self) -> str:
        return self._blueprint.manifest.name

    @property
    def device(self) -> str:
        return self._blueprint.device

    @property
    def is_closed(self) -> bool:
        return self._state is State.CLOSED

    def __repr__(self) -> str:
        with self._lock:
            state = self._shown_state()
        return f"<Instance {self.name} {self._blueprint.manifest.version} on {self.device}, {state}>"

    def wait_ready(self) -> None:
        """Wait for the first start.

        Raises: why the worker could not start; the instance is closed then.
        """
        self._started.result()

    def __call__(self, *tensors: "torch.Tensor") -> Any:
        """Run the plugin and return its result.

        Raises: PluginFailed, WorkerDied, QuarantinedPlugin, LimitReached; UsageError when closed.
        """
        return self.submit(*tensors).result()

    def submit(self, *tensors: "torch.Tensor") -> "Future[Any]":
        """Queue a call and return its future.

        Raises: UsageError for what is no tensor or not as the manifest declares, and when closed; LimitReached when
        4096 calls wait already.
        """
        future: Future[Any] = Future()
        call = _Call(tensors=tensors, future=future, waiting=self._waiting(tensors))
        with self._lock:
            if self._state is State.CLOSED:
                raise UsageError(f"the instance of `{self.name}` is closed", hint="load it again: `host.load(...)`")
            if len(self._queue) >= MAX_QUEUE:
                raise LimitReached(
                    f"{MAX_QUEUE} calls of `{self.name}` wait already",
                    reason="limit:queue",
                    hint="wait for some of them before submitting more",
                    plugin=self.name,
                )
            self._queue.append(call)
            self._counters.calls += 1
            self._lock.notify_all()
        return future

    def stats(self) -> dict[str, Any]:
        """Return what it did and what is in force now."""
        with self._lock:
            handshake, is_running = self._handshake, self._is_running()
            return self._counters.to_dict() | {
                "plugin": self.name,
                "version": str(self._blueprint.manifest.version),
                "state": str(self._shown_state()),
                "device": self.device,
                "pid": handshake.pid if handshake and is_running else None,
                "layers": [layer.id for layer in handshake.layers if layer.held] if handshake else [],
                "accepted_missing": list(handshake.accepted_missing) if handshake else [],
                "torch": handshake.torch if handshake else None,
                "threads": handshake.threads if handshake else None,
                "queued": len(self._queue),
                "batch_policy": self._blueprint.policy.to_value(),
                "run_record": self._run_record,
                **self._blueprint.effective,
            }

    def _is_running(self) -> bool:
        return self._worker is not None and self._worker.is_running()

    def _shown_state(self) -> State:
        # That a worker died idle is noted at the next call, and shown at once.
        return State.STOPPED if self._state is State.READY and not self._is_running() else self._state

    def close(self) -> None:
        """End the worker and all that it started, and wait until it is gone. Calls not done end in an error.

        Raises: WorkerDied when some of it is still there seconds after it was killed.
        """
        with self._lock:
            self._step(Event.CLOSE)
            if self._worker is not None:
                self._worker.kill()
            self._lock.notify_all()
        if threading.current_thread() is not self._thread:
            self._thread.join()
        if self._not_ended is not None:
            raise self._not_ended

    def _waiting(self, tensors: Sequence["torch.Tensor"]) -> Waiting:
        import torch

        for tensor in tensors:
            if not isinstance(tensor, torch.Tensor):
                raise UsageError(f"`{self.name}` takes tensors, not a {type(tensor).__qualname__}")
        manifest = self._blueprint.manifest
        described = [arena.describe(tensor) for tensor in tensors]
        facts = [TensorFacts(dtype=dtype, shape=shape) for dtype, shape in described]
        declared.check_inputs(self.name, manifest.inputs, facts)
        key = batcher.key_of(described, manifest.inputs, manifest.outputs)
        rows = described[0][1][0] if key is not None else 1
        return Waiting(key=key, rows=rows, arrived=time.monotonic())

    def _serve(self) -> None:
        try:
            self._serve_first()
            while (calls := self._next_batch()) is not None:
                self._answer(calls)
        finally:
            self._end()

    def _serve_first(self) -> None:
        try:
            self._start()
        except Exception as error:  # noqa: BLE001 - whoever waits for the start is told, whatever it was
            with self._lock:
                self._step(Event.CLOSE)
            self._started.set_exception(error)
            return
        self._started.set_result(None)

    def _next_batch(self) -> "list[_Call] | None":
        with self._lock:
            while self._state is not State.CLOSED:
                now = time.monotonic()
                decision = batcher.choose([call.waiting for call in self._queue], now, self._blueprint.policy)
                if isinstance(decision, Seal):
                    return self._sealed(decision, now)
                self._lock.wait(max(decision.until - now, 0) if isinstance(decision, Hold) else None)
        return None

    def _sealed(self, seal: Seal, now: float) -> "list[_Call]":
        taken = [self._queue[position] for position in seal.positions]
        for position in reversed(seal.positions):
            del self._queue[position]
        self._counters.sealed(seal.reason, [now - call.waiting.arrived for call in taken])
        return [call for call in taken if call.future.set_running_or_notify_cancel()]

    def _answer(self, calls: "Sequence[_Call]") -> None:
        if not calls:
            return
        try:
            results = self._run(calls)
        except PluginFailed as error:
            self._answer_halves(calls, error)
        except Exception as error:  # noqa: BLE001 - a call always ends: with its result or with what went wrong
            self._fail(calls, error)
        else:
            for call, result in zip(calls, results, strict=True):
                call.future.set_result(result)

    def _answer_halves(self, calls: "Sequence[_Call]", error: PluginFailed) -> None:
        # Without a worker it was the start that failed: that is nobody's poison.
        halves = batcher.halves(calls) if self._worker is not None else None
        if halves is None:
            self._fail(calls, error)
            return
        for half in halves:
            self._answer(half)

    def _fail(self, calls: "Sequence[_Call]", error: Exception) -> None:
        with self._lock:
            self._counters.errors += len(calls)
        for call in calls:
            call.future.set_exception(error)

    def _run(self, calls: "Sequence[_Call]") -> list[Any]:
        worker = self._running_worker()
        with self._lock:
            self._step(Event.CALL)
        parts = list(zip(*(call.tensors for call in calls), strict=True))
        try:
            answer = worker.call(parts, self._blueprint.call_seconds)
        except BaseException as error:
            self._after_failure(worker, error)
            raise
        with self._lock:
            self._step(Event.ANSWERED)
            self._counters.ran(len(calls), answer.compute_seconds)
        answers.check(self.name, answer, self._blueprint.manifest.outputs)
        return answers.cut(self.name, answer, [call.waiting.rows for call in calls])

    def _after_failure(self, worker: WorkerProcess, error: BaseException) -> None:
        is_answered = isinstance(error, PluginFailed) or getattr(error, "reason", None) == "limit:arena"
        if is_answered:
            with self._lock:
                self._step(Event.ANSWERED)
            return
        # Whatever else happened, host and worker no longer know where in their conversation they are.
        self._lose(worker)
        with self._lock:
            self._require_open()

    def _running_worker(self) -> WorkerProcess:
        worker = self._worker
        if worker is not None and not worker.is_running():
            self._lose(worker)
            worker = None
        return worker or self._restart()

    def _restart(self) -> WorkerProcess:
        now = time.monotonic()
        with self._lock:
            if self._state is State.STOPPED and self._budget.is_spent(now):
                self._step(Event.BUDGET_SPENT)
            if self._state is State.QUARANTINED:
                raise self._quarantined()
            self._counters.restarts += 1
        return self._start()

    def _start(self) -> WorkerProcess:
        with self._lock:
            self._require_open()
            self._step(Event.START)
        try:
            worker, handshake = self._launch()
        except BaseException:
            with self._lock:
                self._require_open()
                self._step(Event.DIED)
                self._budget = self._budget.with_crash(time.monotonic())
            raise
        with self._lock:
            self._handshake = handshake
            self._require_open()
            self._step(Event.STARTED)
        self._run_record = self._blueprint.record(handshake)
        return worker

    def _launch(self) -> tuple[WorkerProcess, Handshake]:
        launch = self._blueprint.prepare()
        worker = WorkerProcess(launch)
        with self._lock:
            self._worker = worker
            is_closed = self._state is State.CLOSED
        try:
            if is_closed:
                worker.kill()
            return worker, worker.handshake(self._blueprint.start_seconds)
        except BaseException:
            self._drop(worker)
            raise

    def _lose(self, worker: WorkerProcess) -> None:
        with self._lock:
            self._step(Event.DIED)
            self._budget = self._budget.with_crash(time.monotonic())
        self._drop(worker)

    def _drop(self, worker: WorkerProcess) -> None:
        with self._lock:
            self._worker = None
        worker.close()

    def _end(self) -> None:
        with self._lock:
            self._step(Event.CLOSE)
            worker, self._worker = self._worker, None
            left, self._queue = self._queue, []
        try:
            if worker is not None:
                worker.close()
        except WorkerDied as error:
            self._not_ended = error
        finally:
            self._marks.close()
            self._end_calls(left)

    def _end_calls(self, left: "Sequence[_Call]") -> None:
        error = self._closed()
        for call in left:
            if call.future.set_running_or_notify_cancel():
                call.future.set_exception(error)

    def _step(self, event: Event) -> None:
        if self._state is not State.CLOSED:
            self._state = lifecycle.after(self._state, event)

    def _require_open(self) -> None:
        if self._state is State.CLOSED:
            raise self._closed()

    def _closed(self) -> UsageError:
        return UsageError(f"the instance of `{self.name}` was closed before this call was done")

    def _quarantined(self) -> QuarantinedPlugin:
        minutes = int(lifecycle.CRASH_WINDOW_SECONDS // 60)
        return QuarantinedPlugin(
            f"the worker of `{self.name}` died {lifecycle.MAX_CRASHES} times within {minutes} minutes: "
            "it is not started again",
            hint="read what it printed (`context.output` of the earlier errors), then close it and load it again",
            plugin=self.name,
            crashes=lifecycle.MAX_CRASHES,
        )
