"""What a manifest declares of a plugin's tensors, held against what comes and what goes. Sees facts, never a tensor.

Where nothing is declared nothing is checked, but for one rule: a result is a tensor, or a tuple, list or dict.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from manifests.errors import PluginFailed, UsageError
from manifests.parts import TensorSpec
from runtime.output import printable

_HINT = "its author must mend `outputs` in manifest.yaml, or what the plugin returns"
_ALLOWED = "a plugin returns a tensor, or a tuple, list or dict of tensors and plain values"
_SHOWN_NAMES = 8
_SHOWN_LETTERS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorFacts:
    """What is checked of a tensor; in words `float32 [1, 3]`."""

    dtype: str
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.dtype} {list(self.shape)}"


def check_inputs(plugin: str, declared: Sequence[TensorSpec], came: Sequence[TensorFacts]) -> None:
    """Hold a call's tensors against the declared inputs, in order; -1 allows any size.

    Raises: UsageError naming the input, what was declared and what came.
    """
    if not declared:
        return
    if len(came) != len(declared):
        count = f"{len(came) or 'no'} tensor{'s' if len(came) > 1 else ''}"
        raise UsageError(f"`{plugin}` takes {', '.join(map(_spelled, declared))}, and got {count}", plugin=plugin)
    for spec, facts in zip(declared, came, strict=True):
        if not _suits(spec, facts):
            raise UsageError(f"`{plugin}` takes {_spelled(spec)}, and got {facts}", plugin=plugin, input=spec.name)


def check_result(plugin: str, declared: Sequence[TensorSpec], result: Any) -> None:
    """Hold a result, with facts in the places of its tensors, against the declared outputs.

    They may come as a dict by name, or as a tuple or list in order; a single one also by itself.
    Raises: PluginFailed naming the output, what was declared and what was returned.
    """
    if not isinstance(result, TensorFacts | dict | list | tuple):
        raise _failed(plugin, f"returned {_told(result)}: {_ALLOWED}", hint="")
    if not declared:
        return
    for spec, value in zip(declared, _in_order(plugin, declared, result), strict=True):
        if not isinstance(value, TensorFacts) or not _suits(spec, value):
            raise _failed(
                plugin, f"declares the output {_spelled(spec)}, and returned {_told(value)}", output=spec.name
            )


def _in_order(plugin: str, declared: Sequence[TensorSpec], result: Any) -> Sequence[Any]:
    names = [spec.name for spec in declared]
    if isinstance(result, dict) and result.keys() == set(names):
        return [result[name] for name in names]
    if isinstance(result, list | tuple) and len(result) == len(names):
        return result
    if isinstance(result, TensorFacts) and len(names) == 1:
        return [result]
    outputs = "output" if len(names) == 1 else "outputs"
    raise _failed(plugin, f"declares the {outputs} {_listed(names)}, and returned {_told(result)}")


def _suits(spec: TensorSpec, facts: TensorFacts) -> bool:
    if facts.dtype != spec.dtype or len(facts.shape) != len(spec.shape):
        return False
    return all(size in (-1, found) for size, found in zip(spec.shape, facts.shape, strict=True))


def _spelled(spec: TensorSpec) -> str:
    return f"`{spec.name}` {spec.dtype} {list(spec.shape)}"


def _told(value: Any) -> str:
    if isinstance(value, TensorFacts):
        return str(value)
    if isinstance(value, dict):
        return f"a dict of {_listed(value) or 'nothing'}"
    if isinstance(value, list | tuple):
        return f"a {type(value).__name__} of {len(value)}"
    return f"a value of type '{type(value).__name__}'"


def _listed(names: Iterable[Any]) -> str:
    # The keys of a result are the plugin's own words.
    shown = [f"`{printable(str(name)[:_SHOWN_LETTERS])}`" for name in names]
    return ", ".join(shown[:_SHOWN_NAMES]) + (f" and {len(shown) - _SHOWN_NAMES} more" if shown[_SHOWN_NAMES:] else "")


def _failed(plugin: str, text: str, *, hint: str = _HINT, **context: Any) -> PluginFailed:
    return PluginFailed(f"`{plugin}` {text}", hint=hint, plugin=plugin, **context)
