"""The plugin's process: proves its walls, loads one plugin, answers calls. Trusts its host, holds no other plugin.

Until step 4 no plugin code has run; after it, nothing that this process says is to be believed.
1. close every descriptor but the channel
2. apply the limits, try every layer, report
3. wait for the host's `load`: it comes only if the layers suffice
4. import torch, set its threads, call the plugin's factory
5. answer calls until the channel closes
"""

import importlib
import os
import socket
import sys
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manifests.errors import SpmError, UsageError
from runtime import arena, failure, structure
from runtime.arena import Arena
from runtime.channel import Channel
from runtime.protocol import PROTOCOL_VERSION, ProtocolBroken, encode, parse_slot
from runtime.sandbox.layers import Facts, self_test

if TYPE_CHECKING:
    import torch

Plugin = Callable[..., Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginContext:
    """What a plugin's factory is told: its own tree, its device, and who it is."""

    path: Path
    device: "torch.device"
    name: str
    version: str


class _Gone(Exception):
    """The host closed the channel."""


def main(descriptor: int) -> None:
    """Run a worker on an inherited channel until the host is gone."""
    _close_all_but(descriptor)
    channel = Channel(socket.socket(fileno=descriptor), takes_descriptors=True)
    try:
        _prove(channel)
        plugin = _load(channel)
        if plugin is not None:
            _serve(channel, plugin)
    except (_Gone, BrokenPipeError):
        pass
    # Without the interpreter's teardown, which takes torch a third of a second.
    os._exit(0)


def _close_all_but(descriptor: int) -> None:
    os.closerange(3, descriptor)
    os.closerange(descriptor + 1, max(map(int, os.listdir("/proc/self/fd"))) + 1)


def _receive(channel: Channel, kind: str) -> dict[str, Any]:
    message = channel.receive()
    if message is None:
        raise _Gone
    if message["kind"] != kind:
        raise ProtocolBroken(f"the host sent `{message['kind']}` where `{kind}` belongs")
    return message


def _prove(channel: Channel) -> None:
    start = _receive(channel, "start")
    if start["protocol"] != PROTOCOL_VERSION:
        raise ProtocolBroken(f"the host speaks protocol {start['protocol']}, this worker {PROTOCOL_VERSION}")
    facts = Facts.from_dict(start["facts"])
    facts.limits.apply(is_in_user_namespace=facts.is_in_user_namespace)
    channel.send(encode("tested", layers=[result.to_dict() for result in self_test(facts)]))


def _load(channel: Channel) -> Plugin | None:
    order = _receive(channel, "load")
    try:
        import torch

        torch.set_num_threads(order["threads"])
        plugin = _make(order, torch.device(order["device"]))
    except Exception as error:  # noqa: BLE001 - plugin code may raise anything; the host is told all of it
        channel.send(encode("failed", **_raised(error), kept=False))
        return None
    channel.send(encode("ready", torch=torch.__version__, threads=torch.get_num_threads()))
    return plugin


def _make(order: dict[str, Any], device: "torch.device") -> Plugin:
    own, *required = order["trees"]
    # Our own modules and torch are imported by now, so a plugin's file of the same name cannot take their place.
    sys.path[:0] = [own, *required]
    module, _, factory = order["entry"].partition(":")
    context = PluginContext(path=Path(own), device=device, name=order["name"], version=order["version"])
    plugin = getattr(importlib.import_module(module), factory)(context)
    if not callable(plugin):
        raise TypeError(f"`{order['entry']}` returned a {type(plugin).__qualname__}, not a callable")
    return plugin  # type: ignore[no-any-return]


def _raised(error: BaseException) -> dict[str, Any]:
    return failure.told_of(error) | {"returned": False}


def _unreturnable(error: SpmError) -> dict[str, Any]:
    return {"error": error.message[: failure.MAX_LINE], "traceback": "", "returned": True}


def _serve(channel: Channel, plugin: Plugin) -> None:
    session = _Session(channel)
    while True:
        message = channel.receive()
        if message is None:
            return
        if message["kind"] == "map":
            session.map(message)
        elif message["kind"] == "call":
            session.call(plugin, message)
        else:
            raise ProtocolBroken(f"the host sent `{message['kind']}` where `call` or `map` belongs")


class _Session:
    """The two arenas, and one call at a time."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._arenas: dict[str, Arena] = {}

    def map(self, message: dict[str, Any]) -> None:
        direction = message["direction"]
        if previous := self._arenas.pop(direction, None):
            previous.close()
        self._arenas[direction] = Arena.attach(self._channel.take_descriptor(), message["size"])

    def call(self, plugin: Plugin, message: dict[str, Any]) -> None:
        view = self._arenas["in"].view() if "in" in self._arenas else memoryview(b"")
        inputs = [arena.read(view, parse_slot(slot)) for slot in message["inputs"]]
        memory = weakref.ref(view)
        del view
        kind, members = self._run(plugin, inputs)
        inputs.clear()
        # A plugin that still holds an input would see the next call's bytes in it: that memory is then left to it.
        is_kept = memory() is not None
        try:
            frame = encode(kind, **members, kept=is_kept)
        except ProtocolBroken as error:
            frame = encode("failed", **_unreturnable(error), kept=is_kept)
        self._channel.send(frame)

    def _run(self, plugin: Plugin, inputs: list["torch.Tensor"]) -> tuple[str, dict[str, Any]]:
        import torch

        started = time.perf_counter_ns()
        try:
            with torch.no_grad():
                output = plugin(*inputs)
            spent = time.perf_counter_ns() - started
            return self._returned(output, spent)
        except _Gone:
            raise
        except Exception as error:  # noqa: BLE001 - plugin code may raise anything; the host is told all of it
            return "failed", _raised(error)

    def _returned(self, output: Any, spent: int) -> tuple[str, dict[str, Any]]:
        import torch

        try:
            value, tensors = structure.flatten(output, lambda item: isinstance(item, torch.Tensor))
            return "result", {"value": value, "tensors": self._put(tensors), "compute_ns": spent}
        except SpmError as error:
            return "failed", _unreturnable(error)

    def _put(self, tensors: list["torch.Tensor"]) -> list[dict[str, Any]]:
        slots, size = arena.lay_out([arena.describe(tensor) for tensor in tensors])
        if size > (self._arenas["out"].size if "out" in self._arenas else 0):
            self._grow(size)
        view = self._arenas["out"].view() if size else memoryview(b"")
        for slot, tensor in zip(slots, tensors, strict=True):
            arena.write(view, slot, [tensor])
        return [slot.to_dict() for slot in slots]

    def _grow(self, size: int) -> None:
        self._channel.send(encode("grow", size=size))
        answer = self._channel.receive()
        if answer is None:
            raise _Gone
        if answer["kind"] != "map":
            raise UsageError(f"the outputs of {size} bytes are more than the host has room for")
        self.map(answer)
