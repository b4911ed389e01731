"""Controls and capabilities: the smaller limit rules, and what is not enforced is said."""

import pytest

from manifests.parts import Capabilities, Controls
from runtime.controls import effective, policy_of, ungranted
from runtime.installed import open_installed
from runtime.sandbox.limits import Limits
from tests.runtime.stores import Store
from tests.runtime.test_installed import conf


@pytest.mark.parametrize(
    ("asked", "ceiling", "memory"),
    [
        (None, None, None),
        ("512MiB", None, 512 << 20),
        (None, 1 << 30, 1 << 30),
        ("512MiB", 1 << 30, 512 << 20),
        ("2GiB", 1 << 30, 1 << 30),
        ("4KiB", None, 4096),
    ],
)
def test_the_smaller_memory_limit_rules(
    store: Store, asked: str | None, ceiling: int | None, memory: int | None
) -> None:
    store.add("enc", "", controls=Controls(memory=asked))
    manifest = open_installed(store.root, "enc", conf(store)).manifest

    assert effective(manifest, ceiling).memory_bytes == memory


def test_a_control_that_this_host_cannot_enforce_is_said(store: Store) -> None:
    store.add("enc", "", controls=Controls(memory_fraction="0.5", allow_growth=True, tensor_core_policy="force"))
    manifest = open_installed(store.root, "enc", conf(store)).manifest

    assert effective(manifest, None).controls == {
        "allow_growth": "not enforceable here",
        "memory_fraction": "not enforceable here",
        "tensor_core_policy": "not enforceable here",
    }


def test_torch_itself_gets_room_beside_the_plugins_memory() -> None:
    assert Limits.of(1 << 20, 4) == Limits(address_space=(1 << 30) + (1 << 20), descriptors=1024, processes=100)


def test_what_no_worker_can_be_given_is_named() -> None:
    assert ungranted(Capabilities(network=True, read=("/data",), write=("/out",), exec=True)) == [
        "network",
        "read",
        "write",
    ]
    assert ungranted(Capabilities(env=("A",), processes=3, exec=True)) == []


def test_the_policy_is_told_in_words() -> None:
    assert policy_of(Capabilities(env=("A", "B"), processes=3, exec=True)) == {
        "env": "A, B",
        "exec": "allowed",
        "network": "denied",
        "processes": "3 asked for; threads and processes together are limited",
        "read": "own tree, required plugins, interpreter and system libraries",
        "write": "scratch only",
    }
