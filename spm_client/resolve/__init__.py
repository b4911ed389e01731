"""Which releases to install: requirements, a target and an index in, a resolution or a reasoned refusal out. No I/O."""

from spm_client.resolve.provider import Provider
from spm_client.resolve.requirement import Requirement, parse_spec
from spm_client.resolve.resolution import Pin, Resolution, resolve
from spm_client.resolve.universe import NoSolution, solve_universe

__all__ = [
    "NoSolution",
    "Pin",
    "Provider",
    "Requirement",
    "Resolution",
    "parse_spec",
    "resolve",
    "solve_universe",
]
