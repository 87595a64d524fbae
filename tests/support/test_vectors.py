import pytest

from tests.support import vectors


def test_without_the_official_vectors_their_tests_are_skipped_with_the_reason(monkeypatch, tmp_path):
    monkeypatch.setattr(vectors, "ROOT", tmp_path / "project")
    monkeypatch.delenv(vectors.VARIABLE, raising=False)
    (parameter,) = vectors.official("bip32.json")
    (mark,) = parameter.marks
    assert mark.name == "skip"
    assert vectors.VARIABLE in mark.kwargs["reason"]


def test_a_folder_beside_the_project_is_found(monkeypatch, tmp_path):
    place = tmp_path / "shared" / "vectors"
    place.mkdir(parents=True)
    (place / "some.json").write_text('{"vectors": [{"id": "a"}, {"id": "b"}]}')
    monkeypatch.setattr(vectors, "ROOT", tmp_path / "project")
    monkeypatch.delenv(vectors.VARIABLE, raising=False)
    assert [parameter.id for parameter in vectors.official("some.json", lambda v: v["id"] == "b")] == ["b"]


def test_a_folder_that_was_named_must_exist(monkeypatch, tmp_path):
    monkeypatch.setenv(vectors.VARIABLE, str(tmp_path / "mistyped"))
    with pytest.raises(FileNotFoundError, match="mistyped"):
        vectors.folder()


def test_a_filter_that_matches_nothing_is_a_mistake():
    with pytest.raises(AssertionError, match="no vector"):
        vectors.own("policies.json", lambda _: False)
