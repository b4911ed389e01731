"""Every public test vector of Wycheproof for the two signature forms, read from beside the repository."""

import json
from pathlib import Path
from typing import Any

import pytest

from keys.core_signature import verify_raw
from keys.ext_signature import verify_compact, verify_manifest_token
from manifests.errors import SpmError
from tests.keys.builders import EXT, pem, refusal_of

FOLDER = Path(__file__).parents[2].parent / "shared" / "vectors" / "wycheproof"


def rows(name: str) -> list[dict[str, Any]]:
    path = FOLDER / name
    if not path.exists():
        pytest.skip(f"the public vectors are not here: ../shared/vectors/wycheproof/{name}")
    loaded = json.loads(path.read_bytes())
    assert isinstance(loaded, list)
    return loaded


def test_der_verifier_agrees_with_every_row() -> None:
    vectors = rows("ecdsa_p256_sha256_der.json")

    disagreeing = [row["tcId"] for row in vectors if der_result(row) != row["result"]]

    assert len(vectors) == 377
    assert disagreeing == []


def test_compact_verifier_accepts_exactly_row_18_each_row_with_its_own_key() -> None:
    vectors = rows("jws.json")

    accepted = [row["tcId"] for row in vectors if compact_payload(row) is not None]

    assert accepted == [18]
    assert compact_payload(next(row for row in vectors if row["tcId"] == 18)) == b"foo"


def test_no_row_passes_as_a_manifest() -> None:
    for row in rows("jws.json"):
        with pytest.raises(SpmError) as caught:
            verify_manifest_token(row["jws"].encode(), pem(EXT))
        assert caught.value.exit_code in {20, 21}


def der_result(row: dict[str, Any]) -> str:
    key, message, signature = row["publicKeyPem"].encode(), bytes.fromhex(row["msg"]), bytes.fromhex(row["sig"])
    refusal = refusal_of(lambda: verify_raw(key, message, signature))
    assert refusal is None or refusal.exit_code == 20
    return "valid" if refusal is None else "invalid"


def compact_payload(row: dict[str, Any]) -> bytes | None:
    refusal = refusal_of(lambda: verify_compact(row["jws"].encode(), row["key"]))
    assert refusal is None or refusal.exit_code == 20
    return verify_compact(row["jws"].encode(), row["key"]) if refusal is None else None
