"""Which releases to install: requirements, a target and an index in, a resolution or a reasoned refusal out. No I/O."""

from spm_client.resolve.provider import Provider
from spm_client.resolve.requirement import Requirement, parse_spec
from spm_client.resolve.solver import Pin, Resolution, resolve

__all__ = ["Pin", "Provider", "Requirement", "Resolution", "parse_spec", "resolve"]
