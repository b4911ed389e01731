"""Two keyrings taken together, loader.conf's and the registry's: neither can weaken what the other says."""

from dataclasses import replace

import pytest
from hypothesis import given

from keys.pinned_keys import CoreKey, ExtKey, Keyring, RevocationReason, RevokedKey
from keys.public_key import KeyId
from manifests.errors import ConfigSyntax
from tests.keys.builders import CORE, CORE_TWO, EXT, STRANGER, UNHURRIED, keyid, keyring, pem
from tests.keys.keyring_strategies import keyrings, moments

EMPTY = Keyring(core_threshold=1, core_keys=(), ext_keys=())
EARLY, LATE = "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"


def core(number: int, expires: str | None = None) -> CoreKey:
    return CoreKey(keyid=keyid(number), public_key_pem=pem(number), expires=expires)


def ext(number: int, **terms: object) -> ExtKey:
    key = ExtKey(
        keyid=keyid(number), public_key_pem=pem(number), publisher="audio-team", names=("audio-*",), ceiling=None
    )
    return replace(key, **terms)  # type: ignore[arg-type]


def ring(*keys: CoreKey | ExtKey, threshold: int = 1, revoked: tuple[RevokedKey, ...] = ()) -> Keyring:
    return Keyring(
        core_threshold=threshold,
        core_keys=tuple(key for key in keys if isinstance(key, CoreKey)),
        ext_keys=tuple(key for key in keys if isinstance(key, ExtKey)),
        revoked_keys=revoked,
    )


def retired(since: str) -> RevokedKey:
    return RevokedKey(keyid=keyid(EXT), reason=RevocationReason.RETIRED, since=since)


COMPROMISED = RevokedKey(keyid=keyid(EXT), reason=RevocationReason.COMPROMISED)


def all_keys(made: Keyring) -> list[CoreKey | ExtKey]:
    return [*made.core_keys, *made.ext_keys]


def terms(made: Keyring) -> tuple[object, ...]:
    """Return what has no order: keys with their expiries, revocations, threshold."""
    expiries = {key.keyid: key.expires for key in all_keys(made)}
    return expiries, set(made.revoked_keys), made.revoked_manifests, made.core_threshold


def expires(made: Keyring, key: KeyId) -> str | None:
    return next(found.expires for found in all_keys(made) if found.keyid == key)


def test_keys_of_both_are_pinned() -> None:
    both = ring(core(CORE), ext(EXT)).merged(ring(core(CORE_TWO), ext(STRANGER)))

    assert both == ring(core(CORE), core(CORE_TWO), ext(EXT), ext(STRANGER))


def test_key_that_both_name_has_the_terms_of_loader_conf() -> None:
    wider = ext(EXT, publisher="somebody", names=("*",))

    assert ring(ext(EXT)).merged(ring(wider)) == ring(ext(EXT))


@pytest.mark.parametrize(
    ("ours", "theirs", "counts"),
    [(EARLY, LATE, EARLY), (LATE, EARLY, EARLY), (None, LATE, LATE), (EARLY, None, EARLY), (None, None, None)],
)
@pytest.mark.parametrize("make", [core, lambda number, moment: ext(number, expires=moment)])
def test_earlier_expiry_counts(ours: str | None, theirs: str | None, counts: str | None, make: object) -> None:
    assert callable(make)

    both = ring(make(EXT, ours)).merged(ring(make(EXT, theirs)))

    assert expires(both, keyid(EXT)) == counts


@pytest.mark.parametrize(
    ("ours", "theirs", "counts"),
    [
        (retired(EARLY), retired(LATE), retired(EARLY)),
        (retired(LATE), retired(EARLY), retired(EARLY)),
        (retired(EARLY), COMPROMISED, COMPROMISED),
        (COMPROMISED, retired(EARLY), COMPROMISED),
    ],
)
def test_stricter_revocation_counts(ours: RevokedKey, theirs: RevokedKey, counts: RevokedKey) -> None:
    assert ring(revoked=(ours,)).merged(ring(revoked=(theirs,))).revoked_keys == (counts,)


@pytest.mark.parametrize(
    ("ours", "theirs", "counts"),
    [
        (ring(core(CORE), core(CORE_TWO), threshold=2), ring(core(CORE)), 2),
        (ring(core(CORE)), ring(core(CORE), core(CORE_TWO), threshold=2), 2),
        (ring(core(CORE)), ring(threshold=9), 9),
        (ring(threshold=9), ring(core(CORE)), 9),
        (EMPTY, EMPTY, 1),
    ],
)
def test_higher_threshold_counts(ours: Keyring, theirs: Keyring, counts: int) -> None:
    assert ours.merged(theirs).core_threshold == counts


@pytest.mark.parametrize(("ours", "theirs"), [(core(EXT), ext(EXT)), (ext(EXT), core(EXT))])
def test_key_with_two_roles_is_refused(ours: CoreKey | ExtKey, theirs: CoreKey | ExtKey) -> None:
    with pytest.raises(ConfigSyntax) as caught:
        ring(ours).merged(ring(theirs))

    assert caught.value.message == (
        f"the key {keyid(EXT)} has one role in loader.conf and another in the registry's keyring"
    )
    assert caught.value.hint == "take it out of one of the two; if it is compromised, revoke it"
    assert (caught.value.exit_code, caught.value.reason) == (26, "conf-syntax")


def test_registrys_revocation_reaches_a_key_that_only_loader_conf_pins() -> None:
    both = keyring().merged(ring(revoked=(COMPROMISED,)))

    assert both.revocation_of(keyid(EXT)) == COMPROMISED
    assert both.revocation_of(keyid(CORE)) is None


@pytest.mark.property
@UNHURRIED
@given(ours=keyrings(), theirs=keyrings(), created=moments())
def test_no_revocation_is_ever_lost(ours: Keyring, theirs: Keyring, created: str) -> None:
    both = ours.merged(theirs)

    assert both.revoked_manifests == ours.revoked_manifests | theirs.revoked_manifests
    for revoked in ours.revoked_keys + theirs.revoked_keys:
        counts = both.revocation_of(revoked.keyid)
        assert counts is not None
        assert counts.covers(created) or not revoked.covers(created)


@pytest.mark.property
@UNHURRIED
@given(ours=keyrings(), theirs=keyrings())
def test_no_threshold_is_ever_lowered_and_no_key_lives_longer(ours: Keyring, theirs: Keyring) -> None:
    both = ours.merged(theirs)

    for one in (ours, theirs):
        assert both.core_threshold >= one.core_threshold
        for key in all_keys(one):
            until = expires(both, key.keyid)
            assert key.expires is None or (until is not None and until <= key.expires)


@pytest.mark.property
@UNHURRIED
@given(ours=keyrings(), theirs=keyrings())
def test_keys_are_those_of_the_two_each_in_its_role_and_once(ours: Keyring, theirs: Keyring) -> None:
    both = ours.merged(theirs)

    named = [key.keyid for key in all_keys(both)]
    assert len(named) == len(set(named))
    assert set(named) == {key.keyid for one in (ours, theirs) for key in all_keys(one)}
    assert all(both.role_of(key) in {ours.role_of(key), theirs.role_of(key)} for key in named)
    for key in ours.ext_keys:
        assert replace(both.ext_key(key.keyid), expires=key.expires) == key


@pytest.mark.property
@UNHURRIED
@given(ours=keyrings(), theirs=keyrings(), third=keyrings())
def test_all_but_names_and_ceilings_is_the_same_in_any_order(ours: Keyring, theirs: Keyring, third: Keyring) -> None:
    assert terms(ours.merged(theirs)) == terms(theirs.merged(ours))
    assert terms(ours.merged(theirs).merged(third)) == terms(ours.merged(theirs.merged(third)))


@pytest.mark.property
@UNHURRIED
@given(ours=keyrings(), theirs=keyrings())
def test_merging_the_same_again_changes_nothing(ours: Keyring, theirs: Keyring) -> None:
    both = ours.merged(theirs)

    assert both.merged(theirs) == both.merged(both) == both.merged(EMPTY) == both
