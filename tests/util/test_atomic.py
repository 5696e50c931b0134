import os
import stat

import pytest

from milpbn.errors import InputError
from milpbn.util.atomic import atomic_path, atomic_write_text


def test_text_is_written_as_utf8_with_plain_line_ends(tmp_path):
    atomic_write_text(tmp_path / "a.txt", "ü\n")
    assert (tmp_path / "a.txt").read_bytes() == b"\xc3\xbc\n"
    atomic_write_text(tmp_path / "a.txt", "new")
    assert (tmp_path / "a.txt").read_text() == "new"
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("exception", [RuntimeError, KeyboardInterrupt])
def test_an_interrupted_block_keeps_the_old_file(tmp_path, exception):
    target = tmp_path / "m.lp.gz"
    target.write_text("old")

    def write_half():
        with atomic_path(target) as temporary:
            assert temporary.name.endswith("m.lp.gz")
            assert temporary.parent == tmp_path
            temporary.write_text("half")
            raise exception

    with pytest.raises(exception):
        write_half()
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["m.lp.gz"]


def test_permissions_are_those_of_any_new_file(tmp_path):
    (tmp_path / "plain").touch()
    atomic_write_text(tmp_path / "atomic", "")
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("plain", "atomic")}
    assert len(modes) == 1


def test_links_are_followed(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    atomic_write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


@pytest.mark.parametrize(
    ("path", "sentence"),
    [(".", "not a regular file"), (os.devnull, "not a regular file"), ("missing/file", "does not exist")],
)
def test_paths_that_cannot_be_written_are_refused(tmp_path, monkeypatch, path, sentence):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=sentence):
        atomic_write_text(path, "text")
    assert not os.listdir(tmp_path)


def test_a_name_too_long_is_a_sentence(tmp_path):
    with pytest.raises(InputError, match="Cannot write"):
        atomic_write_text(tmp_path / ("x" * 300), "text")
