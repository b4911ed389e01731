"""What loader.conf pins: its keys listed, added, taken out, and the root. Checks no signature."""

from dataclasses import dataclass, replace
from pathlib import Path

from keys.key_files import KeyRole, PublicKeyFile, load_public
from keys.keyring import LoaderConf, RootPin, loader_block
from keys.one_read import read_once
from manifests.errors import ConfigSyntax, NotFound, UsageError
from registry.services.conf_text import with_root, without_key
from registry.services.setup import OPERATOR
from registry.storage.records import Records
from registry.storage.rows import AuditRow
from registry.storage.site import Site, write_public_file

_MAX_KEY_FILE_BYTES = 16 << 10
_PRIVATE = b"PRIVATE KEY-----"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """A pinned key. A core key has neither publisher nor names: it signs every core plugin."""

    role: KeyRole
    keyid: str
    publisher: str | None = None
    names: tuple[str, ...] = ()


def read_key(path: Path) -> PublicKeyFile:
    """Read a `.pub` file.

    Raises:
        UsageError: it is not there, or a private key was given; nothing of it is shown.
        ConfigSyntax: it is not a public key of spm.
    """
    if path.is_file() and _PRIVATE in read_once(path, _MAX_KEY_FILE_BYTES)[0]:
        public = f"`{path.with_suffix('.pub')}`" if path.suffix != ".pub" else "the public key that belongs to it"
        raise UsageError(f"{path}: this is a private key: keep it, and add {public}")
    return load_public(path)


def pin_key(site: Site, key: PublicKeyFile, names: tuple[str, ...], now: int) -> str:
    """Add a public key to loader.conf; return the lines that were added.

    Raises:
        UsageError: it is pinned already, or the names do not fit its role.
        ConfigError: loader.conf would be refused afterwards; it was not changed.
    """
    _require_names(key, names)
    block = loader_block(key, names)
    # The write transaction is what two such commands at once queue for.
    with site.database.writing() as records:
        if LoaderConf.read(site.loader_conf).keyring.role_of(key.keyid) is not None:
            raise UsageError(
                f"{site.loader_conf} pins the key {key.keyid} already",
                hint="to change what it may sign, edit its lines there",
            )
        text = f"{site.loader_conf.read_text(encoding='utf-8').rstrip()}\n\n{block}"
        LoaderConf.parse(text)
        detail = f"{key.role.value} {key.name} {' '.join(names)}".rstrip()
        records.add_audit(_row("key-add", key.keyid, detail, now, records.serial()))
        write_public_file(site.loader_conf, text)
    return block


def unpin_key(site: Site, keyid: str, now: int) -> KeyRole:
    """Take a key out of loader.conf; return the role that it had.

    Raises:
        NotFound: it is not pinned.
        ConfigError: loader.conf would be refused afterwards, or its lines cannot be told apart; it was not changed.
    """
    with site.database.writing() as records:
        conf = LoaderConf.read(site.loader_conf)
        role = next((pin.role for pin in pins(conf) if pin.keyid == keyid), None)
        if role is None:
            raise NotFound(
                f"{site.loader_conf} pins no key {keyid!r:.80}",
                hint="see `spm-registry key list`; write the key id whole",
            )
        text = without_key(site.loader_conf.read_text(encoding="utf-8"), keyid)
        if _parsed(text, site, keyid) != _expected(conf, keyid):
            raise _by_hand(site, keyid)
        records.add_audit(_row("key-remove", keyid, role.value, now, records.serial()))
        write_public_file(site.loader_conf, text)
    return role


def pin_root(site: Site) -> None:
    """Let loader.conf pin the newest adopted root; nothing happens where it does so already, or there is none.

    Raises:
        ConfigError: its lines cannot be told apart; it was not changed.
    """
    with site.database.reading() as records:
        if _newest_root(records) in (None, LoaderConf.read(site.loader_conf).root):
            return
    with site.database.writing() as records:
        pin = _newest_root(records)
        if pin is not None:
            write_public_file(site.loader_conf, text_with_root(site, pin))


def text_with_root(site: Site, pin: RootPin) -> str:
    """Return the text of loader.conf with this root in it.

    Raises:
        ConfigError: its lines cannot be told apart.
    """
    text = with_root(site.loader_conf.read_text(encoding="utf-8"), pin.version, pin.sha256)
    if not _says(text, replace(LoaderConf.read(site.loader_conf), root=pin)):
        raise ConfigSyntax(
            f"the lines of the root cannot be told apart in {site.loader_conf}; it was not changed",
            hint=f'write there by hand: `[root]`, `version = {pin.version}`, `sha256 = "{pin.sha256}"`',
        )
    return text


def pins(conf: LoaderConf) -> tuple[Pin, ...]:
    """Return every pinned key, core keys first."""
    return (
        *(Pin(role=KeyRole.CORE, keyid=key.keyid) for key in conf.keyring.core_keys),
        *(
            Pin(role=KeyRole.EXT, keyid=key.keyid, publisher=key.publisher, names=key.names)
            for key in conf.keyring.ext_keys
        ),
    )


def _newest_root(records: Records) -> RootPin | None:
    row = records.signed.current("root")
    return None if row is None else RootPin(version=row.version, sha256=row.sha256)


def _says(text: str, conf: LoaderConf) -> bool:
    try:
        return LoaderConf.parse(text) == conf
    except ConfigSyntax:
        return False


def _require_names(key: PublicKeyFile, names: tuple[str, ...]) -> None:
    if key.role is KeyRole.EXT and not names:
        raise UsageError(
            f"the ext key `{key.name}` needs the names of the plugins that it may sign",
            hint=f"add `--names '{key.publisher}-*'`, or `--names '*'` for all",
        )
    if key.role is KeyRole.CORE and names:
        raise UsageError(
            f"the core key `{key.name}` takes no names: it signs every core plugin", hint="leave out `--names`"
        )


def _parsed(text: str, site: Site, keyid: str) -> LoaderConf:
    try:
        return LoaderConf.parse(text)
    except ConfigSyntax as error:
        raise ConfigSyntax(
            f"without the key {keyid} {site.loader_conf} would be refused: {error.message}; it was not changed",
            hint="mend what is said there first, such as `threshold`",
        ) from error


def _expected(conf: LoaderConf, keyid: str) -> LoaderConf:
    keyring = replace(
        conf.keyring,
        core_keys=tuple(key for key in conf.keyring.core_keys if key.keyid != keyid),
        ext_keys=tuple(key for key in conf.keyring.ext_keys if key.keyid != keyid),
    )
    return replace(conf, keyring=keyring)


def _by_hand(site: Site, keyid: str) -> ConfigSyntax:
    return ConfigSyntax(
        f"the lines of the key {keyid} cannot be told apart in {site.loader_conf}; it was not changed",
        hint="take them out by hand",
    )


def _row(action: str, keyid: str, detail: str, now: int, serial: int) -> AuditRow:
    return AuditRow(at=now, actor=OPERATOR, action=action, subject=keyid, detail=detail, serial=serial)
