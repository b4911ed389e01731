"""A team's registry and its publisher, made with the real commands. Makes no claims."""

import json
import select
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.request import urlopen

from manifests.index import Shard
from tests.e2e.commands import SPM_REGISTRY, Client, environment, run
from tests.e2e.sources import ALPHA, SCALE, noise, write_source

REGISTRY_ID = "team.example"
START_SECONDS = 30
AT_ONCE = 3
BETA_1 = '{plugins: {beta: "^1.0"}}'
WASTE = """device_affinity: [npu:7, cpu]
waivers:
  affinity-unbound: Kept as a specimen
  range-unbounded: Kept as a specimen
  batch-policy-missing: Kept as a specimen
"""
UNBOUND = """batch_policy: adaptive
waivers:
  affinity-unbound: Runs wherever it is put
"""


@dataclass
class Team:
    """A served registry and the person who publishes to it."""

    root: Path
    url: str
    publisher: Client
    keyids: dict[str, str] = field(default_factory=dict)
    loader_conf: str = ""

    def client(self, home: Path, url: str = "") -> Client:
        """Return a new machine that trusts this team, reaching it at another URL if given."""
        client = Client(home)
        client.trust(self.loader_conf.replace(self.url, url or self.url))
        return client

    def key(self, name: str, role: str) -> None:
        """Make a key of the publisher `team`; `publish` signs with `ext` or `core`."""
        words = ("keys", "new", "--role", role, "--name", name, "--publisher", "team", "--no-passphrase")
        self.keyids[name] = self.publisher.spm(*words).ok().document["keyid"]

    def pin(self, name: str, *names: str) -> None:
        """Have the registry trust a key, and hand its new loader.conf to the publisher."""
        self.registry("key", "add", self.keys / f"{name}.pub", *(("--names", *names) if names else ()))
        self.loader_conf = self.registry("loader-conf").replace("http://127.0.0.1:8080", self.url)
        self.publisher.trust(self.loader_conf)

    @property
    def keys(self) -> Path:
        return self.publisher.home / "config" / "spm" / "keys"

    def registry(self, *arguments: str | Path) -> str:
        """Run `spm-registry` on the root and return what it printed."""
        done = run([SPM_REGISTRY, *arguments, "--root", self.root], self.publisher.environment)
        assert done.code == 0, done.err
        return done.out

    def pack(self, source: Path) -> Path:
        """Pack a source folder and return the packed one."""
        out = self.publisher.home / "dist"
        packed = self.publisher.spm("pack", source, "--out", out, "--publisher", "team").ok()
        return Path(packed.document["path"])

    def publish(self, *sources: Path, role: str = "ext") -> None:
        """Pack, sign and publish source folders."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            packed = list(pool.map(self.pack, sources))
            self.publisher.spm("sign", *packed, "--key", role).ok()
            for answer in pool.map(lambda folder: self.publisher.spm("publish", folder), packed):
                answer.ok()

    def fetch(self, path: str) -> bytes:
        """Return what the registry serves, past any client."""
        with urlopen(self.url + path, timeout=START_SECONDS) as response:
            return bytes(response.read())

    def shard(self, name: str) -> Shard:
        """Return what the registry's index says of a plugin."""
        return Shard.from_bytes(self.fetch(f"/v1/index/{name}.json"))


@contextmanager
def serving(root: Path, home: Path) -> Iterator[str]:
    """Serve a registry on a free port until the end and give its URL."""
    server = subprocess.Popen(
        [SPM_REGISTRY, "serve", "--root", str(root), "--bind", "127.0.0.1:0", "--json"],
        env=environment(home),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert server.stdout is not None
        ready, _, _ = select.select([server.stdout], [], [], START_SECONDS)
        assert ready, "the registry did not start"
        yield str(json.loads(server.stdout.readline())["url"])
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(START_SECONDS)
        if server.stdout is not None:
            server.stdout.close()


def make_root(root: Path, holder: Client) -> None:
    """Give a registry a root of trust, signed by one key that the holder makes."""
    holder.spm("keys", "new", "--role", "root", "--name", "root", "--no-passphrase").ok()
    keys = holder.home / "config" / "spm" / "keys"
    words: list[str | Path] = [SPM_REGISTRY, "root", "init", keys / "root.pub", "--sign", keys / "root.key"]
    run([*words, "--root", root, "--json"], holder.environment).ok()


@contextmanager
def founded(folder: Path, *, registry: str = REGISTRY_ID) -> Iterator[Team]:
    """Give a served registry with one publisher, who is logged in, and nothing published."""
    publisher, root = Client(folder / "publisher"), folder / "registry"
    words: list[str | Path] = [SPM_REGISTRY, "init", "--root", root, "--id", registry, "--json"]
    made = run(words, environment(folder)).ok().document
    make_root(root, publisher)
    with serving(root, folder) as url:
        team = Team(root=root, url=url, publisher=publisher)
        team.key("ext", "ext")
        team.key("core", "core")
        team.pin("ext", "*")
        team.pin("core")
        publisher.spm("login", said=made["token"] + "\n").ok()
        yield team


def publish_plugins(team: Team, folder: Path) -> None:
    """Publish what the tests install.

    `alpha` (three releases) requires `beta` `^1.0` (two); `gamma` is core; `heavy` has a blob of 3 MiB; `delta` has
    a newest release that fits no target; `idle` trips the three waste traps; `free` names no device.
    """
    betas = [write_source(folder, "beta", version) for version in ("1.0.0", "1.1.0")]
    alphas = [
        write_source(folder, "alpha", version, module=ALPHA, requires=BETA_1) for version in ("1.0.0", "1.1.0", "2.0.0")
    ]
    heavy = write_source(folder, "heavy", "1.0.0", files={"weights.bin": noise(3 << 20)})
    delta = write_source(folder, "delta", "1.0.0")
    newer_delta = write_source(folder, "delta", "1.1.0", requires='{torch: ">=99,<100"}')
    idle = write_source(folder, "idle", "1.0.0", seedance_version=">=2.0", more=WASTE)
    free = write_source(folder, "free", "1.0.0", more=UNBOUND)
    team.publish(*betas, *alphas, heavy, delta, newer_delta, idle, free)
    tool = {"bin/tool": b"#!/bin/sh\n"}
    gamma = write_source(folder, "gamma", "1.0.0", type="core", module=SCALE.format(factor=3), files=tool)
    team.publish(gamma, role="core")
