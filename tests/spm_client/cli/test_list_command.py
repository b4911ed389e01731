"""`spm list`: what is installed, bound, accepted, revoked, and from where."""

from pathlib import Path

from keys.pinned_keys import RevocationReason, RevokedKey
from keys.public_key import KeyId
from manifests.batching import BatchMode, BatchPolicy
from manifests.devices import parse_affinity
from manifests.lockfile import Bindings, Generation, InstalledEntry
from manifests.names import PluginName
from tests.keys.trust_builders import make_trust, write_state
from tests.manifests.builders import CREATED, DIGEST, installed
from tests.spm_client.cli.conftest import Spm

BOUND = Bindings(affinity=parse_affinity(["cuda:1", "cpu"]), batch_policy=BatchPolicy(mode=BatchMode.STATIC))


def keep(root: Path, *plugins: InstalledEntry) -> None:
    generation = Generation(number=1, registry="team.example", created=CREATED, plugins=plugins)
    (root / "generations").mkdir()
    (root / "generations" / "000001.json").write_bytes(generation.to_bytes())
    (root / "current").write_text("000001\n")


def revoke(root: Path, keyid: str) -> None:
    trust = make_trust()
    revoked = RevokedKey(keyid=KeyId(keyid), reason=RevocationReason.COMPROMISED)
    trust.publish_keyring(trust.keyring.with_revoked(revoked).following())
    write_state(root, trust.state, 1)


def test_plugins_are_listed_with_what_was_chosen_for_them(spm: Spm, tmp_path: Path) -> None:
    keep(
        tmp_path,
        installed("alpha", bindings=BOUND, requires=(PluginName("beta"),)),
        installed("beta", requested=False, fallback="beta 1.0.0 was accepted instead of 1.1.0"),
    )

    told = spm("list", "--root", tmp_path)

    assert (told.code, told.err) == (0, "")
    assert told.out == (
        "NAME   VERSION           CLASS  BOUND TO    BATCH   WANTED BY\n"
        "alpha  1.0.0             ext    cuda:1,cpu  static  you\n"
        "beta   1.0.0 (fallback)  ext    -           -       alpha\n"
    )


def test_plugins_of_several_registries_are_listed_with_theirs(spm: Spm, tmp_path: Path) -> None:
    keep(tmp_path, installed("alpha"), installed("px-beta", registry="other.example"))

    told, document = spm("list", "--root", tmp_path), spm("list", "--root", tmp_path, "--json").document

    assert told.out == (
        "NAME     VERSION  CLASS  BOUND TO  BATCH  WANTED BY  FROM\n"
        "alpha    1.0.0    ext    -         -      you        team.example\n"
        "px-beta  1.0.0    ext    -         -      you        other.example\n"
    )
    assert [plugin.get("registry") for plugin in document["plugins"]] == [None, "other.example"]


def test_what_a_registry_has_revoked_is_marked_in_its_own_plugins_alone(spm: Spm, tmp_path: Path) -> None:
    keep(tmp_path, installed("alpha"), installed("px-beta", registry="other.example"))
    (tmp_path / "registries" / "other.example").mkdir(parents=True)
    revoke(tmp_path / "registries" / "other.example", DIGEST)

    told, document = spm("list", "--root", tmp_path), spm("list", "--root", tmp_path, "--json").document

    assert [line.split()[1:3] for line in told.out.splitlines()[1:]] == [["1.0.0", "ext"], ["1.0.0", "(revoked)"]]
    assert [plugin["is_revoked"] for plugin in document["plugins"]] == [False, True]
