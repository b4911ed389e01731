"""What verifying an installed plugin costs, beside hashing the same bytes: `python benchmarks/verify.py`.

A plugin is verified as at each load: owners and modes of the store, the manifest's signature, the whole tree. Beside it
stand `hashlib.sha256` over the same bytes, in memory already (SHA256; the ratio is to this), and over the same files,
opened and read by `hashlib.file_digest` (FILES). RECEIPT is a load that takes big files by the store's receipt. Each
round runs all of them once, so that a busy moment of the machine falls on all alike. Prints medians, and the noise: the
lower to the upper quartile of the verification. The files are in the page cache; a disk would add the same to all.
"""

import argparse
import hashlib
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ec

from keys import ext_signature
from keys.keyring import LoaderConf
from keys.public_key import keyid_of, pem_of
from manifests.lockfile import InstalledEntry
from manifests.manifest import Manifest
from manifests.names import PluginName
from manifests.parts import FileEntry, PluginType
from manifests.ranges import Range
from manifests.versions import Version
from runtime.installed import TrustedConf, open_entry
from spm_client.workflows.hash_in_full import hash_in_full

KIB, MIB = 1 << 10, 1 << 20
BAR = 1.2
PLUGINS: Mapping[str, Mapping[int, int]] = {
    "one-of-280-mb": {280 * MIB: 1},
    "mixed": {128 * MIB: 1, 8 * MIB: 8, MIB // 2: 32, 16 * KIB: 100, 2 * KIB: 100},
    "thousand-of-4-kib": {4 * KIB: 1000},
    "of-1-mb": {960 * KIB: 1, 4 * KIB: 16},
    "of-100-mb": {96 * MIB: 1, 256 * KIB: 16},
    "of-1-gb": {1000 * MIB: 1, 6 * MIB: 4},
}
HELD = ("one-of-280-mb", "mixed", "of-100-mb", "of-1-gb")
"""Where the bar holds: a plugin of a few small files is all overhead, and takes milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """A plugin in a store of its own, and what its files hold."""

    root: Path
    entry: InstalledEntry
    conf: TrustedConf
    contents: Mapping[Path, bytes]

    @property
    def size(self) -> int:
        return sum(map(len, self.contents.values()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9, help="runs of each measure (default: 9)")
    parser.add_argument("--plugin", choices=PLUGINS, action="append", help="measure only this one")
    options = parser.parse_args()
    print(f"{'PLUGIN':<20}{'FILES':>6}{'MB':>7}{'SHA256 ms':>11}{'FILES ms':>10}{'VERIFY ms':>11}", end="")
    print(f"{'RATIO':>7}{'NOISE ms':>18}{'RECEIPT ms':>12}")
    is_within = True
    for name in options.plugin or PLUGINS:
        with tempfile.TemporaryDirectory() as folder:
            plugin = install(Path(folder), name)
            samples = measure(measures_of(plugin), options.rounds)
        print(row(name, plugin, samples), flush=True)
        is_within &= name not in HELD or ratio_of(samples) <= BAR
    print(f"{options.rounds} rounds, bar {BAR} for {', '.join(HELD)}; Python {sys.version.split()[0]}, ", end="")
    print(f"{os.cpu_count()} cpus, load {os.getloadavg()[0]:.1f}")
    return 0 if is_within else 1


def measures_of(plugin: Installed) -> dict[str, Callable[[], object]]:
    in_full = TrustedConf(replace(plugin.conf, full_hash_bytes=1 << 50))
    hash_in_full(plugin.root, plugin.entry, plugin.conf)  # writes the receipt
    return {
        "sha256": lambda: [hashlib.sha256(data).digest() for data in plugin.contents.values()],
        "files": lambda: [digest_of(path) for path in plugin.contents],
        "verify": lambda: open_entry(plugin.root, plugin.entry, in_full),
        "receipt": lambda: open_entry(plugin.root, plugin.entry, plugin.conf),
    }


def measure(measures: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    samples: dict[str, list[float]] = {name: [] for name in measures}
    for turn in range(rounds + 1):
        for name, run in measures.items():
            started = time.perf_counter()
            run()
            if turn:  # The first round fills caches and imports what is imported late.
                samples[name].append((time.perf_counter() - started) * 1000)
    return samples


def ratio_of(samples: Mapping[str, list[float]]) -> float:
    return statistics.median(samples["verify"]) / statistics.median(samples["sha256"])


def row(name: str, plugin: Installed, samples: Mapping[str, list[float]]) -> str:
    middle = {measure: statistics.median(values) for measure, values in samples.items()}
    low, _, high = statistics.quantiles(samples["verify"], n=4)
    return (
        f"{name:<20}{len(plugin.contents):>6}{plugin.size / 1e6:>7.0f}{middle['sha256']:>11.1f}{middle['files']:>10.1f}"
        f"{middle['verify']:>11.1f}{ratio_of(samples):>7.2f}{f'{low:.1f} to {high:.1f}':>18}{middle['receipt']:>12.1f}"
    )


def digest_of(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def install(root: Path, name: str) -> Installed:
    """Lay a signed plugin out as an install leaves it."""
    sizes = [size for size, count in PLUGINS[name].items() for _ in range(count)]
    contents = {f"data{place // 100:02}/file{place:04}.bin": os.urandom(size) for place, size in enumerate(sizes)}
    manifest = manifest_of(name, contents)
    tree = root / "plugins" / name / "1.0.0"
    for path, data in contents.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_bytes(data)
        (tree / path).chmod(0o444)
    key = ec.generate_private_key(ec.SECP256R1())
    keyid, signed = keyid_of(key.public_key()), manifest.to_bytes()
    digest = hashlib.sha256(signed).hexdigest()
    folder = root / "manifests" / digest
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_bytes(signed)
    (folder / "manifest.jws").write_bytes(ext_signature.sign(key, keyid, signed))
    entry = InstalledEntry(
        name=manifest.name,
        version=manifest.version,
        release="1.0.0",
        manifest_sha256=digest,
        type=manifest.type,
        keyids=(keyid,),
        requested=True,
    )
    conf = LoaderConf.parse(
        '[registry]\nid = "team.example"\nurl = "http://127.0.0.1:8080"\n[load]\nfull_hash_bytes = 0\n[[ext]]\n'
        f'publisher = "team"\nnames = ["*"]\nkeyid = "{keyid}"\n'
        f'public_key = """\n{pem_of(key.public_key()).decode()}"""\n'
    )
    return Installed(
        root=root,
        entry=entry,
        conf=TrustedConf(conf),
        contents={tree / path: data for path, data in contents.items()},
    )


def manifest_of(name: str, contents: Mapping[str, bytes]) -> Manifest:
    return Manifest(
        registry="team.example",
        publisher="team",
        created="2026-01-31T12:00:00Z",
        name=PluginName(name),
        version=Version.parse("1.0.0"),
        type=PluginType.EXT,
        summary="a plugin to measure",
        license="MIT",
        entry="plugin:make",
        seedance_version=Range.parse(">=2.0,<3"),
        files=tuple(
            FileEntry(path=path, size=len(data), sha256=hashlib.sha256(data).hexdigest(), mode="r")
            for path, data in sorted(contents.items())
        ),
    )


if __name__ == "__main__":
    sys.exit(main())
