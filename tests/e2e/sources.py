"""The sources of tiny plugins, as an author writes them. Packs and signs nothing."""

import random
from pathlib import Path

SCALE = """import torch


def make(context):
    def scale(x):
        return x * {factor}

    return scale
"""
ALPHA = """import beta


def make(context):
    inner = beta.make(context)

    def alpha(x):
        return inner(x) + 1

    return alpha
"""
FIT = """device_affinity: [cpu]
batch_policy: adaptive
"""


def write_source(
    folder: Path,
    name: str,
    version: str,
    *,
    type: str = "ext",  # noqa: A002
    module: str = SCALE.format(factor=2),
    requires: str = "{}",
    seedance_version: str = ">=2.0.0,<3",
    more: str = FIT,
    files: dict[str, bytes] | None = None,
) -> Path:
    """Write a source folder and return it. Each release has its own bytes, so that no blob is shared by chance."""
    source = folder / f"{name}-{version}"
    (source / "plugin").mkdir(parents=True)
    (source / "manifest.yaml").write_text(
        f"""name: {name}
version: {version}
type: {type}
summary: The plugin {name} of the tests
license: MIT
entry: {name}:make
seedance_version: "{seedance_version}"
requires: {requires}
inputs:
  - {{name: x, dtype: float32, shape: [-1, 2]}}
outputs:
  - {{name: y, dtype: float32, shape: [-1, 2]}}
{more}"""
    )
    (source / "plugin" / f"{name}.py").write_text(f'"""{name} {version}."""\n\n{module}')
    for path, data in (files or {}).items():
        place = source / "plugin" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
        place.chmod(0o755 if path.startswith("bin/") else 0o644)
    return source


def noise(count: int) -> bytes:
    """Return bytes that do not compress, the same each time."""
    return random.Random(7).randbytes(count)
