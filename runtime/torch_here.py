"""The refusals where the host process has no torch to use. Importing this imports no torch."""

from typing import Any

from manifests.errors import IncompatibleTarget

_HINT = "install torch, then `pip install 'seedance-spm[runtime]'` (in a checkout: `pip install '.[runtime]'`)"


def no_torch(who: str, **context: Any) -> IncompatibleTarget:
    """Return the refusal for what needs torch where none is installed."""
    return IncompatibleTarget(
        f"{who} needs torch, and no torch is installed beside spm", reason="torch", hint=_HINT, **context
    )


def require_torch(who: str) -> None:
    """Import torch for somebody who needs it in this process.

    Raises: IncompatibleTarget with the reason `torch` when it is not installed, or cannot be imported.
    """
    try:
        import torch  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name == "torch":
            raise no_torch(who) from None
        raise _unusable(who, error) from error
    except (ImportError, OSError) as error:
        raise _unusable(who, error) from error


def _unusable(who: str, error: Exception) -> IncompatibleTarget:
    return IncompatibleTarget(
        f"{who} needs torch, and the torch that is installed cannot be imported: {error}",
        reason="torch",
        hint="`python -c 'import torch'` shows the same without spm",
    )
