"""What must be refused for one of the reasons of trust, on a machine that has something to lose. Makes no claims."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from cryptography.hazmat.primitives.asymmetric import ec
from securesystemslib.signer import SSlibKey
from tuf.api.metadata import Metadata, Root

from keys import ext_signature
from keys.ext_signature import TOKEN_TYPE
from keys.public_key import keyid_of
from keys.trust_state import MOMENT
from manifests.parts import FileEntry
from tests.e2e.reason_scene import Scene, core_table, token_with
from tests.e2e.sources import write_source
from tests.keys.trust_builders import make_trust, new_signer, write_state
from tests.spm_client.resolve.universe import HOST

DAY = timedelta(days=1)
INSTALL = ("install alpha",)
INDEX = ("install alpha", "trust update")
IMPORT = ("trust import {folder}/trust.json",)
LOAD = ("verify", "run beta --input {folder}/x.json")
PROJECT = ("lock --project {folder}", "sync --project {folder}")
OFFLINE = ("trust show", "run beta --input {folder}/x.json")
CREATED = "2026-01-31T12:00:00Z"
EXPIRED = "2026-01-01T00:00:00Z"
IN_FORCE = "ask its publisher for a release that is signed by a key in force"
UNUSED = "nothing of it was used; if it stays so, ask its publisher for a release signed by `spm sign`"
NO_MANIFEST = "its author signed what is no manifest: ask its publisher for another release"
MEND_CONF = "correct it, or get loader.conf anew from whoever runs your registry (`spm-registry loader-conf`)"
NOT_MADE_BY_SPM = "tell the registry's administrator: this was not made by `spm-registry root`"
ASK = "tell the registry's administrator; nothing was changed"
CLOCK = (
    "this host's clock says {now}, but the registry's index was signed at %s: one of the two clocks is wrong, "
    "and with such a clock nothing can be told to have expired"
)
SET_CLOCK = "set this host's clock (`date -u` shows it); if it is right, tell the registry's administrator"

Said = tuple[str, str]
"""A message and a hint; `{now}` stands for the clock's reading in the refusal's context."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """What is done, and the commands that must all be refused for it; `is_of_beta`: `spm verify` names the plugin."""

    exit: int
    reason: str
    do: Callable[[Scene], Said]
    commands: tuple[str, ...]
    is_of_beta: bool = False

    def __str__(self) -> str:
        return f"{self.reason}-{self.do.__name__}"


# By an author, or by who has an author's key


def a_header_with_a_member_of_its_own(scene: Scene) -> Said:
    header = f'{{"alg":"ES256","crit":["exp"],"kid":"{scene.registry.keyid}","typ":"{TOKEN_TYPE}"}}'
    digest = scene.registry.publish("alpha")
    token = token_with(header.encode(), scene.registry.key, scene.manifest(digest))
    scene.replace_token(digest, token)
    return (
        "`alpha` 1.0.0 is refused: the token's header has the member 'crit', only alg, kid and typ are accepted",
        UNUSED,
    )


def a_key_beside_an_installed_signature(scene: Scene) -> Said:
    header = f'{{"alg":"ES256","jku":"http://127.0.0.1:9/","kid":"{scene.registry.keyid}","typ":"{TOKEN_TYPE}"}}'
    token = token_with(header.encode(), scene.registry.key, scene.manifest(scene.beta))
    (scene.installed / "manifest.jws").write_bytes(token)
    return (
        "`beta` 1.0.0 is refused: the token's header has the member 'jku', only alg, kid and typ are accepted",
        UNUSED,
    )


def a_padded_token_in_the_store(scene: Scene) -> Said:
    token = scene.installed / "manifest.jws"
    token.write_bytes(token.read_bytes() + b"=")
    return "`beta` 1.0.0 is refused: the token's signature is not canonical base64url", UNUSED


def a_core_signature_beside_the_installed_one(scene: Scene) -> Said:
    (scene.installed / f"manifest.sig.{scene.registry.keyid}").write_bytes(b"0")
    return (
        "`beta` 1.0.0 is refused: the manifest has both core and ext signatures, a release is of one class",
        UNUSED,
    )


def a_core_key_on_an_ext_plugin(scene: Scene) -> Said:
    key = ec.generate_private_key(ec.SECP256R1())
    keyid = keyid_of(key.public_key())
    digest = scene.registry.publish("alpha")
    scene.replace_token(digest, ext_signature.sign(key, keyid, scene.manifest(digest)))
    scene.pin(tables=core_table(1, [key]))
    return (
        f"`alpha` 1.0.0 is refused: the ext signature is by the key {keyid}, which is trusted for core plugins only",
        "ask its publisher to sign it with a key of the role ext, "
        "or mend loader.conf if it pins this key for the wrong class",
    )


def one_of_two_core_signatures(scene: Scene) -> Said:
    keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(2)]
    scene.publish_core("alpha", keys[0])
    scene.pin(tables=core_table(2, keys))
    return (
        "`alpha` 1.0.0 is refused: the manifest has 1 of the 2 signatures by pinned core keys that are asked for",
        "ask its publisher for a release with enough signatures (the holders of core keys run `spm sign`)",
    )


def a_key_that_is_pinned_for_fewer_names_than_it_was(scene: Scene) -> Said:
    scene.client.trust(scene.client.conf.read_text().replace('names = ["*"]', 'names = ["audio-*"]'))
    return (
        f"`beta` 1.0.0 is refused: the key {scene.registry.keyid} of `team` may not sign beta: "
        "it is trusted for `audio-*` only",
        'if it should, add "beta" to the `names` of this key where it is pinned: '
        "in loader.conf or in the registry's keyring",
    )


def a_key_past_its_expiry(scene: Scene) -> Said:
    scene.registry.publish("alpha")
    scene.pin(f'expires = "{EXPIRED}"\n')
    return _expired("alpha", scene), IN_FORCE


def a_key_that_expired_after_the_install(scene: Scene) -> Said:
    scene.pin(f'expires = "{EXPIRED}"\n')
    return _expired("beta", scene), IN_FORCE


def a_revoked_release(scene: Scene) -> Said:
    digest = scene.registry.publish("alpha")
    scene.registry.revoke_manifest(digest)
    return _revoked("alpha", digest)


def a_release_that_was_revoked_after_the_install(scene: Scene) -> Said:
    scene.registry.revoke_manifest(scene.beta)
    scene.client.spm("trust", "update").ok()
    return _revoked("beta", scene.beta)


def a_manifest_with_a_space(scene: Scene) -> Said:
    digest = scene.registry.publish("alpha")
    scene.replace_manifest("alpha", scene.manifest(digest).replace(b'":', b'": ', 1))
    return "`alpha` 1.0.0 is refused: the manifest is not in RFC 8785 canonical form", NO_MANIFEST


def a_manifest_whose_file_leads_out(scene: Scene) -> Said:
    scene.registry.publish("alpha", files=(FileEntry(path="../alpha.py", size=1, sha256="0" * 64, mode="r"),))
    return (
        "`alpha` 1.0.0 is refused: the manifest is refused: `files`: item 0: `path`: the path '../alpha.py' is "
        "refused: each part is 1 to 200 characters of A-Z a-z 0-9 . _ + - and is neither `.` nor `..`",
        NO_MANIFEST,
    )


def a_name_that_no_file_table_holds(scene: Scene) -> Said:
    write_source(scene.folder, "gamma", "1.0.0", files={"weights (1).bin": b"1"})
    return (
        "the path 'weights (1).bin' is refused: each part is 1 to 200 characters of A-Z a-z 0-9 . _ + - "
        "and is neither `.` nor `..`",
        "rename the file in `plugin/`",
    )


# By the registry, or by who stands before it


def a_timestamp_without_a_signature(scene: Scene) -> Said:
    metadata = Metadata.from_bytes(scene.registry.index.files["timestamp.json"])
    metadata.signatures.clear()
    scene.registry.index.files["timestamp.json"] = metadata.to_bytes()
    return "`timestamp.json` of the registry has no signature", ASK


def a_timestamp_by_a_stranger(scene: Scene) -> Said:
    scene.registry.index.online = new_signer()
    scene.registry.index.publish_timestamp()
    return "`timestamp.json` of the registry is signed by no key that may sign it", ASK


def a_root_with_a_key_of_another_kind(scene: Scene) -> Said:
    def edit(root: Root) -> None:
        root.keys["a" * 64] = SSlibKey("a" * 64, "ed25519", "ed25519", {"public": "b" * 64})

    scene.registry.index.publish_root(edit=edit)
    return (
        "root 2 has a key of the kind ed25519/ed25519: spm takes ecdsa/ecdsa-sha2-nistp256 alone",
        NOT_MADE_BY_SPM,
    )


def a_root_that_the_online_key_may_sign(scene: Scene) -> Said:
    keyid = scene.registry.index.online.public_key.keyid

    scene.registry.index.publish_root(edit=lambda root: root.roles["root"].keyids.append(keyid))
    return f"root 2 lets the online key {keyid} sign what only offline keys may", NOT_MADE_BY_SPM


def a_root_with_one_of_two_signatures(scene: Scene) -> Said:
    other = new_signer().public_key

    def edit(root: Root) -> None:
        root.add_key(other, "root")
        root.roles["root"].threshold = 2

    scene.registry.index.publish_root(edit=edit)
    return "`2.root.json` of the registry has 1 of the 2 signatures that it needs", ASK


def an_index_from_tomorrow(scene: Scene) -> Said:
    index = scene.registry.index
    index.now += DAY
    index.publish_timestamp()
    return CLOCK % f"{index.now:{MOMENT}}", SET_CLOCK


def a_clock_set_back_after_the_last_refresh(scene: Scene) -> Said:
    index = scene.registry.index
    index.now += DAY
    index.publish_timestamp()
    write_state(scene.client.store, index.state, number=2)
    return CLOCK % f"{index.now:{MOMENT}}", SET_CLOCK


# By a trust file


def a_trust_file_with_a_line_more(scene: Scene) -> Said:
    scene.write("trust.json", scene.export_trust() + b"\n")
    return "the trust file is not in RFC 8785 canonical form", "take the file as `spm trust export` wrote it"


def the_trust_file_of_another_registry(scene: Scene) -> Said:
    other = make_trust(registry="other.example", now=scene.registry.index.now)
    scene.registry.index, ours = other, scene.registry.index
    scene.write("trust.json", scene.export_trust())
    scene.registry.index = ours
    return (
        "the trust file is of the registry `other.example`, loader.conf names `team.example`",
        "ask the root holders of `team.example` for theirs, or check `registry.id` in loader.conf",
    )


def a_trust_file_from_before_what_was_seen(scene: Scene) -> Said:
    scene.write("trust.json", scene.export_trust())
    scene.registry.revoke_manifest("0" * 64)
    scene.client.spm("trust", "update").ok()
    return (
        "the trust file has targets 1, and this host has seen targets 2",
        "ask the root holders for their newest file; nothing was changed",
    )


# By who may write where trust comes from


def no_loader_conf(scene: Scene) -> Said:
    scene.client.conf.unlink()
    return (
        f"{scene.client.conf} is not there, and without it nothing says whom to trust",
        "get loader.conf from whoever runs your registry, and put it there",
    )


def no_project(scene: Scene) -> Said:
    return (
        f"`{scene.folder}` is no project: there is no spm.toml",
        "`spm init` begins one; `--project DIR` names one that is elsewhere",
    )


def a_project_of_another_registry(scene: Scene) -> Said:
    (scene.folder / "here.json").write_text(json.dumps(HOST.to_dict()))
    (scene.folder / "spm.toml").write_text(
        '[project]\nname = "speech"\nregistry = "other.example"\n\n[targets]\nhere = "here.json"\n'
    )
    return (
        "spm.toml is of the registry `other.example`, but loader.conf is of `team.example`",
        "use the store of that registry (`--root DIR`), or change `project.registry` in spm.toml",
    )


def a_loader_conf_that_everyone_may_write(scene: Scene) -> Said:
    scene.client.conf.chmod(0o666)
    return (
        f"{scene.client.conf} has the mode 0666: its group or everyone may write it, so it cannot say whom to trust",
        f"`chmod go-w {scene.client.conf}`, after a look at what it says",
    )


def a_loader_conf_with_a_misspelt_limit(scene: Scene) -> Said:
    scene.pin(tables="[limits]\nmemory_byte = 1\n")
    return f"{scene.client.conf} is refused: `limits.memory_byte` is not a known member", MEND_CONF


def _expired(name: str, scene: Scene) -> str:
    return (
        f"`{name}` 1.0.0 is refused: the manifest, made at {CREATED}, is signed by the key {scene.registry.keyid}, "
        f"which expired at {EXPIRED}"
    )


def _revoked(name: str, digest: str) -> Said:
    return (
        f"`{name}` 1.0.0 is refused: the manifest sha256:{digest} was revoked by the registry's "
        "root holders or in loader.conf",
        f"take another release: `spm info {name}` lists them",
    )


PACK = ("pack {folder}/gamma-1.0.0 --out {folder}/dist --publisher team",)
ATTACKS = (
    Attack(exit=20, reason="header-refused", do=a_header_with_a_member_of_its_own, commands=INSTALL),
    Attack(exit=20, reason="header-refused", do=a_key_beside_an_installed_signature, commands=LOAD, is_of_beta=True),
    Attack(exit=20, reason="sig-malformed", do=a_padded_token_in_the_store, commands=LOAD, is_of_beta=True),
    Attack(exit=20, reason="wrong-class", do=a_core_signature_beside_the_installed_one, commands=LOAD, is_of_beta=True),
    Attack(exit=20, reason="unsigned", do=a_timestamp_without_a_signature, commands=INDEX),
    Attack(exit=20, reason="alg-refused", do=a_root_with_a_key_of_another_kind, commands=INDEX),
    Attack(exit=21, reason="key-unknown", do=a_timestamp_by_a_stranger, commands=INDEX),
    Attack(exit=21, reason="key-role", do=a_core_key_on_an_ext_plugin, commands=INSTALL),
    Attack(exit=21, reason="key-role", do=a_root_that_the_online_key_may_sign, commands=INDEX),
    Attack(exit=21, reason="threshold-short", do=one_of_two_core_signatures, commands=INSTALL),
    Attack(exit=21, reason="threshold-short", do=a_root_with_one_of_two_signatures, commands=INDEX),
    Attack(
        exit=21,
        reason="key-namespace",
        do=a_key_that_is_pinned_for_fewer_names_than_it_was,
        commands=LOAD,
        is_of_beta=True,
    ),
    Attack(exit=21, reason="key-expired", do=a_key_past_its_expiry, commands=INSTALL),
    Attack(exit=21, reason="key-expired", do=a_key_that_expired_after_the_install, commands=LOAD, is_of_beta=True),
    Attack(exit=22, reason="artifact-revoked", do=a_revoked_release, commands=INSTALL),
    Attack(
        exit=22,
        reason="artifact-revoked",
        do=a_release_that_was_revoked_after_the_install,
        commands=LOAD,
        is_of_beta=True,
    ),
    Attack(exit=23, reason="clock-suspect", do=an_index_from_tomorrow, commands=INDEX),
    Attack(exit=23, reason="clock-suspect", do=a_clock_set_back_after_the_last_refresh, commands=LOAD),
    Attack(exit=24, reason="rollback", do=a_trust_file_from_before_what_was_seen, commands=IMPORT),
    Attack(exit=24, reason="mix", do=the_trust_file_of_another_registry, commands=IMPORT),
    Attack(exit=25, reason="path", do=a_name_that_no_file_table_holds, commands=PACK),
    Attack(exit=25, reason="type", do=a_manifest_whose_file_leads_out, commands=INSTALL),
    Attack(exit=25, reason="non-canonical", do=a_manifest_with_a_space, commands=INSTALL),
    Attack(exit=25, reason="non-canonical", do=a_trust_file_with_a_line_more, commands=IMPORT),
    Attack(exit=26, reason="lock-missing", do=no_project, commands=PROJECT),
    Attack(exit=26, reason="conf-registry", do=a_project_of_another_registry, commands=PROJECT),
    Attack(exit=26, reason="conf-missing", do=no_loader_conf, commands=OFFLINE),
    Attack(exit=26, reason="conf-perms", do=a_loader_conf_that_everyone_may_write, commands=OFFLINE),
    Attack(exit=26, reason="conf-syntax", do=a_loader_conf_with_a_misspelt_limit, commands=OFFLINE),
)
