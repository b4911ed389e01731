"""One worker process as its host sees it: started, proven, called, ended. Knows no queue and never restarts.

Whatever the worker says is parsed and bounded; where it breaks the protocol it counts as dead.
The thread that starts a worker must outlive it: bubblewrap's parent-death signal follows that thread.
"""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from manifests.errors import LayerMissing, LimitReached, PluginFailed, UsageError, WorkerDied
from runtime import arena, structure
from runtime.answers import Answer
from runtime.arena import Arena
from runtime.channel import Channel
from runtime.namespace import Namespace
from runtime.output import Tail, printable
from runtime.protocol import (
    PROTOCOL_VERSION,
    Failed,
    Grow,
    LayerResult,
    Proof,
    ProtocolBroken,
    Ready,
    Reply,
    Result,
    Slot,
    encode,
    parse_reply,
)
from runtime.sandbox.bwrap import Command
from runtime.sandbox.layers import LAYERS, Facts, judge, missing_layer

if TYPE_CHECKING:
    import torch

MAX_ARENA_BYTES = 4 << 30
END_SECONDS = 4.0

TRACEBACK_HINT = "the plugin's traceback is in `context.traceback`"
NEXT_CALL_HINT = "the next call starts a new worker"


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """All that starts one worker: the command (the channel's descriptor is added), what to test, what to load."""

    plugin: str
    command: Command
    facts: Facts
    order: dict[str, Any]
    accept_missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Handshake:
    """What a worker proved before plugin code ran, and what it runs on."""

    pid: int
    layers: tuple[LayerResult, ...]
    accepted_missing: tuple[str, ...]
    torch: str
    threads: int


class WorkerProcess:
    """A started worker. Every method but `kill` belongs to the thread that started it.

    Raises: LayerMissing when it cannot be started at all.
    """

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._pid: int | None = None
        self._namespace: Namespace | None = None
        self._deadline: float | None = None
        self._inputs: Arena | None = None
        self._outputs: Arena | None = None
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with theirs:
            try:
                self._process = _spawn(launch.command, theirs.fileno())
            except OSError as error:
                ours.close()
                raise self._cannot_start(error) from error
        self._channel = Channel(ours)
        self._output = Tail(self._process.stdout)

    def handshake(self, seconds: float) -> Handshake:
        """Prove the layers, then let the worker load its plugin.

        Raises: LayerMissing; PluginFailed when the plugin's import or factory raised; WorkerDied; LimitReached when so
        many seconds pass first. The worker is ended in each case.
        """
        try:
            return self._handshake(time.monotonic() + seconds)
        except TimeoutError as error:
            raise self._too_late(
                "start",
                f"the worker of `{self._launch.plugin}` was not ready within {seconds:g} s and was ended",
                "look for slow work in the plugin's import or factory, or raise `Host(start_deadline=...)`",
                seconds,
            ) from error
        except ProtocolBroken as error:
            raise self._broken(error) from error

    def _handshake(self, deadline: float) -> Handshake:
        self._deadline = deadline
        self._tell(encode("start", protocol=PROTOCOL_VERSION, facts=self._launch.facts.to_dict()))
        self._pid = self._channel.peer_pid(deadline)
        tested = self._hear(deadline) if self._pid is not None else None
        if not isinstance(tested, Proof) or self._pid is None:
            raise self._not_isolated()
        # Now, before plugin code: later the worker may be anything.
        self._namespace = Namespace.of_worker(self._pid)
        accepted = judge(self._launch.plugin, tested.layers, self._launch.accept_missing)
        self._tell(encode("load", **self._launch.order))
        ready = self._hear(deadline)
        if isinstance(ready, Failed):
            raise self._plugin_failed(ready, "could not be loaded")
        if not isinstance(ready, Ready):
            raise self._died_or_broken(ready)
        return Handshake(
            pid=self._pid,
            layers=tested.layers,
            accepted_missing=accepted,
            torch=ready.torch,
            threads=ready.threads,
        )

    def call(self, parts: Sequence[Sequence["torch.Tensor"]], seconds: float | None) -> Answer:
        """Run the plugin once; part by part the tensors are laid together along dimension 0.

        Raises: PluginFailed when plugin code raised (the worker lives on); WorkerDied; LimitReached when so many
        seconds pass, or the tensors are more than an arena may hold.
        """
        self._deadline = None if seconds is None else time.monotonic() + seconds
        try:
            self._channel.require_silence()
            return self._exchange(self._send_inputs(parts), self._deadline)
        except TimeoutError as error:
            self.kill()
            raise self._too_late(
                "call",
                f"a call of `{self._launch.plugin}` took longer than the {seconds:g} s allowed, and its worker "
                f"(pid {self._pid}) was ended",
                "raise it with `--timeout` (in Python: `Host(call_deadline=...)`)",
                seconds,
            ) from error
        except ProtocolBroken as error:
            raise self._broken(error) from error

    def is_running(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        """End the worker and all it started. Any thread may call it."""
        # Bubblewrap's death takes the namespace with it; its first process is ended as well, and trusts nobody for it.
        if self._namespace is not None:
            self._namespace.kill()
        self._process.kill()

    def close(self) -> None:
        """End the worker and wait until nothing of it is left.

        Raises: WorkerDied when some of it is still there after a few seconds.
        """
        self.kill()
        try:
            self._wait_gone(time.monotonic() + END_SECONDS)
        except (TimeoutError, subprocess.TimeoutExpired) as error:
            raise WorkerDied(
                f"the worker of `{self._launch.plugin}` (pid {self._pid}) was killed, and some of it was still there "
                f"{END_SECONDS:g} s later",
                hint="look for its processes: the kernel may be waiting for a disk or a device",
                plugin=self._launch.plugin,
                pid=self._pid,
            ) from error
        finally:
            self._release()

    def _wait_gone(self, deadline: float) -> None:
        self._process.wait(END_SECONDS)
        if self._namespace is not None:
            self._namespace.wait_gone(deadline - time.monotonic())
        # Without a namespace only the channel's end shows that the worker is gone.
        self._channel.wait_gone(deadline)

    def _release(self) -> None:
        self._channel.close()
        self._output.close()
        namespace, self._namespace = self._namespace, None
        if namespace is not None:
            namespace.close()
        for memory in (self._inputs, self._outputs):
            if memory is not None:
                memory.close()

    def _send_inputs(self, parts: Sequence[Sequence["torch.Tensor"]]) -> tuple[Slot, ...]:
        slots, size = arena.lay_out([_joined(pieces) for pieces in parts])
        if size > MAX_ARENA_BYTES:
            raise LimitReached(
                f"the inputs of `{self._launch.plugin}` take {size} bytes, more than the {MAX_ARENA_BYTES} allowed",
                reason="limit:arena",
                plugin=self._launch.plugin,
            )
        if size and (self._inputs is None or self._inputs.size < size):
            self._inputs = self._mapped("in", self._inputs, size)
        view = self._inputs.view() if self._inputs else memoryview(b"")
        for slot, pieces in zip(slots, parts, strict=True):
            arena.write(view, slot, pieces)
        return slots

    def _exchange(self, slots: Sequence[Slot], deadline: float | None) -> Answer:
        self._tell(encode("call", inputs=[slot.to_dict() for slot in slots]))
        reply, refusal = self._hear(deadline), None
        if isinstance(reply, Grow):
            refusal = self._grow(reply.size)
            reply = self._hear(deadline)
        if isinstance(reply, Failed | Result) and reply.kept and self._inputs is not None:
            self._inputs.close()
            self._inputs = None
        if isinstance(reply, Failed):
            raise refusal or self._plugin_failed(reply, "raised")
        if not isinstance(reply, Result) or refusal is not None:
            raise self._died_or_broken(reply)
        return Answer(value=reply.value, tensors=self._read_outputs(reply), compute_seconds=reply.compute_ns / 1e9)

    def _grow(self, size: int) -> LimitReached | None:
        if size <= MAX_ARENA_BYTES:
            self._outputs = self._mapped("out", self._outputs, size)
            return None
        self._tell(encode("refused"))
        return LimitReached(
            f"the outputs of `{self._launch.plugin}` take {size} bytes, more than the {MAX_ARENA_BYTES} allowed",
            reason="limit:arena",
            plugin=self._launch.plugin,
        )

    def _mapped(self, direction: str, previous: Arena | None, size: int) -> Arena:
        if previous is not None:
            previous.close()
        memory, descriptor = arena.create(min(arena.size_class(size), MAX_ARENA_BYTES))
        with open(descriptor, "rb") as file:
            self._tell(encode("map", direction=direction, size=memory.size), file.fileno())
        return memory

    def _read_outputs(self, reply: Result) -> tuple["torch.Tensor", ...]:
        view = self._outputs.view() if self._outputs else memoryview(b"")
        try:
            structure.build(reply.value, range(len(reply.tensors)))
            arena.require_laid_out(reply.tensors)
            tensors = tuple(arena.read(view, slot) for slot in reply.tensors)
        except (UsageError, RuntimeError, ValueError, TypeError, OverflowError) as error:
            raise ProtocolBroken(f"the worker sent a wrong `result` message: {str(error)[:500]}") from error
        return tensors

    def _tell(self, frame: bytes, descriptor: int | None = None) -> None:
        try:
            self._channel.send(frame, descriptor, deadline=self._deadline)
        except (BrokenPipeError, ConnectionResetError):
            # Whoever reads next finds the channel closed, and says so with the worker's status.
            return

    def _hear(self, deadline: float | None) -> Reply | None:
        message = self._channel.receive(deadline)
        return None if message is None else parse_reply(message)

    def _plugin_failed(self, failed: Failed, how: str) -> PluginFailed:
        return PluginFailed(
            f"`{self._launch.plugin}` {'cannot return that' if failed.returned else how}: {printable(failed.error)}",
            hint=TRACEBACK_HINT if failed.traceback else "",
            plugin=self._launch.plugin,
            error=failed.error,
            traceback=failed.traceback,
            output=self._output.text(),
        )

    def _died_or_broken(self, reply: Reply | None) -> WorkerDied:
        if reply is None:
            return self._died()
        return self._broken(ProtocolBroken(f"the worker sent `{type(reply).__name__.lower()}` out of turn"))

    def _died(self) -> WorkerDied:
        how, number = self._end()
        return WorkerDied(
            f"the worker of `{self._launch.plugin}` (pid {self._pid}) {how}",
            hint=NEXT_CALL_HINT,
            plugin=self._launch.plugin,
            pid=self._pid,
            signal=number,
            output=self._output.text(),
        )

    def _too_late(self, what: str, message: str, hint: str, seconds: float | None) -> LimitReached:
        return LimitReached(
            message, reason=f"limit:{what}", hint=hint, seconds=seconds, plugin=self._launch.plugin, pid=self._pid
        )

    def _broken(self, error: ProtocolBroken) -> WorkerDied:
        self.kill()
        return WorkerDied(
            f"the worker of `{self._launch.plugin}` (pid {self._pid}) broke the protocol and was ended: "
            f"{printable(error.message)}",
            hint=NEXT_CALL_HINT,
            plugin=self._launch.plugin,
            pid=self._pid,
            signal="SIGKILL",
            output=self._output.text(),
        )

    def _cannot_start(self, error: OSError) -> LayerMissing:
        return missing_layer(
            LAYERS[1],
            f"the sandbox for `{self._launch.plugin}` could not be built: "
            f"{self._launch.command.before[0]} cannot be started: {error.strerror}",
            plugin=self._launch.plugin,
        )

    def _not_isolated(self) -> LayerMissing:
        how, _ = self._end()
        told = printable(self._output.text().strip()).replace("\n", "; ")
        return missing_layer(
            LAYERS[1],
            f"the sandbox for `{self._launch.plugin}` could not be built: "
            f"bubblewrap {how}: {told or 'it said nothing'}",
            plugin=self._launch.plugin,
        )

    def _end(self) -> tuple[str, str | None]:
        """Return how the process ended, in words, and the signal's name."""
        try:
            status = self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            self._process.wait()
            return "closed its channel and was ended by SIGKILL", "SIGKILL"
        self._output.drained()
        # Bubblewrap passes a signal of its child on as 128 + number.
        number = -status if status < 0 else status - 128
        if number in set(signal.Signals):
            name = signal.Signals(number).name
            return f"was ended by {name}", name
        return f"ended with status {status}", None


def _joined(pieces: Sequence["torch.Tensor"]) -> tuple[str, tuple[int, ...]]:
    dtype, shape = arena.describe(pieces[0])
    if len(pieces) == 1:
        return dtype, shape
    return dtype, (sum(piece.shape[0] for piece in pieces), *shape[1:])


def _spawn(command: Command, channel: int) -> "subprocess.Popen[bytes]":
    with open(os.memfd_create("spm-command"), "w+b", buffering=0) as hidden:
        hidden.write(command.hidden)
        hidden.seek(0)
        return subprocess.Popen(
            [*command.words(hidden.fileno()), str(channel)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(channel, hidden.fileno()),
            env={},
            bufsize=0,
            cwd="/",
        )
