"""What the registry says when its machine is short of something. Notices nothing itself."""

from manifests.errors import RegistryRefused


def storage_full() -> RegistryRefused:
    """Say that the disk is full."""
    return RegistryRefused(
        "the registry has no room left on its disk; nothing was published",
        reason="storage-full",
        hint="tell the one who runs it, then publish again",
    )


def stayed_locked(seconds: float) -> RegistryRefused:
    """Say that another writer kept the database for too long."""
    return RegistryRefused(
        f"the registry's database stayed locked for {seconds:g} s", reason="busy", hint="try again in a moment"
    )
