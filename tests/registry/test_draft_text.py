"""A draft in words: who has signed, as a table, and who is still to."""

from keys.public_key import KeyId
from registry.commands.draft_text import status
from registry.services.root_draft import Need
from registry.services.root_terms import SigningKey


def _key(name: str, digit: str) -> SigningKey:
    return SigningKey(keyid=KeyId(digit * 64), public_key_pem=b"", name=name)


ANA, BEN, CID, DORA = _key("ana", "a"), _key("ben", "b"), _key("cid", "c"), _key("dora", "d")


def _need(document: str, by_root: int, threshold: int, signed: list[SigningKey], unsigned: list[SigningKey]) -> Need:
    return Need(
        document=document,
        version=2,
        root_version=by_root,
        threshold=threshold,
        signed=tuple(signed),
        unsigned=tuple(unsigned),
    )


def test_what_all_documents_lack_is_said_once() -> None:
    needs = [_need(document, 2, 2, [ANA], [CID, DORA]) for document in ("root", "targets")]

    assert list(status(needs)) == [
        "SIGNER  KEYID             ROOT 2   TARGETS 2",
        "ana     aaaaaaaaaaaaaaaa  signed   signed",
        "cid     cccccccccccccccc  missing  missing",
        "dora    dddddddddddddddd  missing  missing",
        "1 more is needed: cid or dora",
    ]


def test_old_and_new_root_keys_have_columns_of_their_own() -> None:
    needs = [
        _need("root", 1, 2, [ANA], [BEN]),
        _need("root", 2, 2, [], [BEN, CID, DORA]),
        _need("targets", 2, 2, [], [BEN, CID, DORA]),
    ]

    assert list(status(needs)) == [
        "SIGNER  KEYID             OLD ROOT KEYS  NEW ROOT KEYS  TARGETS 2",
        "ana     aaaaaaaaaaaaaaaa  signed         -              -",
        "ben     bbbbbbbbbbbbbbbb  missing        missing        missing",
        "cid     cccccccccccccccc  -              missing        missing",
        "dora    dddddddddddddddd  -              missing        missing",
        "1 more of the old root keys is needed: ben",
        "2 more of the new root keys are needed: 2 of ben, cid and dora",
    ]


def test_a_complete_draft_lacks_nothing() -> None:
    assert list(status([_need("targets", 2, 1, [ANA], [BEN])]))[1:] == [
        "ana     aaaaaaaaaaaaaaaa  signed",
        "ben     bbbbbbbbbbbbbbbb  missing",
    ]


def test_two_keys_of_one_name_are_told_apart_by_their_ids() -> None:
    said = list(status([_need("targets", 2, 1, [], [_key("root", "1"), _key("root", "2")])]))

    assert said[-1] == f"1 more is needed: root {'1' * 16} or root {'2' * 16}"


def test_no_name_makes_the_table_wider_than_100_columns() -> None:
    longest = _key("n" * 64, "e")
    needs = [_need("root", 1, 1, [], [longest]), _need("root", 2, 1, [], [longest])]

    assert max(len(line) for line in list(status(needs))[:-1]) <= 100
