import os
import signal
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from milpbn.errors import InputError, MilpbnWarning
from milpbn.util import atomic
from milpbn.util.atomic import atomic_path, atomic_write_text, check_writable, save_or_warn


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


@pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="needs names of open files")
def test_an_open_file_is_refused_also_by_a_link_to_it(tmp_path):
    """Renaming a new file over it would part the stream from its file."""
    with open(tmp_path / "out", "w") as out:
        os.symlink(f"/dev/fd/{out.fileno()}", tmp_path / "link")
        for path in (f"/dev/fd/{out.fileno()}", tmp_path / "link"):
            with pytest.raises(InputError, match="not a regular file"):
                atomic_write_text(path, "text")
    assert (tmp_path / "out").read_text() == ""


def test_a_name_too_long_is_a_sentence(tmp_path):
    with pytest.raises(InputError, match="Cannot write"):
        atomic_write_text(tmp_path / ("x" * 300), "text")


def test_what_a_killed_process_left_is_removed_by_the_next_that_writes_the_file(tmp_path):
    code = (
        "import os, signal, sys; from milpbn.util.atomic import atomic_path\n"
        "with atomic_path(sys.argv[1]) as temporary:\n"
        "    temporary.write_text('half'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    for _ in range(2):  # the second one takes the name that the first one has left
        done = subprocess.run([sys.executable, "-c", code, tmp_path / "a.json"], check=False)
        assert done.returncode == -signal.SIGKILL
        assert os.listdir(tmp_path) == [".milpbn0-a.json"]
    check_writable(tmp_path / "a.json")  # as every command does before its work
    assert os.listdir(tmp_path) == []
    atomic_write_text(tmp_path / "a.json", "whole")
    assert os.listdir(tmp_path) == ["a.json"]


def test_what_another_process_writes_stays(tmp_path):
    with atomic_path(tmp_path / "a.json") as other:
        other.write_text("of another")
        atomic_write_text(tmp_path / "a.json", "whole")
        assert sorted(os.listdir(tmp_path)) == [other.name, "a.json"]
    assert (tmp_path / "a.json").read_text() == "of another"


def test_a_temporary_name_that_another_process_took_meanwhile_is_left_to_it(tmp_path, monkeypatch):
    replace = os.replace

    def replace_and_take(source, target):
        replace(source, target)
        source.write_text("of another")

    monkeypatch.setattr(os, "replace", replace_and_take)
    atomic_write_text(tmp_path / "a.json", "whole")
    assert sorted(os.listdir(tmp_path)) == [".milpbn0-a.json", "a.json"]


def test_threads_may_write_the_same_file(tmp_path):
    texts = [str(k) * 5000 for k in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda text: [atomic_write_text(tmp_path / "a", text) for _ in range(40)], texts))
    assert (tmp_path / "a").read_text() in texts
    assert os.listdir(tmp_path) == ["a"]


def test_a_file_that_cannot_be_written_in_the_middle_of_work_is_a_warning(tmp_path):
    with pytest.warns(MilpbnWarning, match=r"folder does not exist.*\. The search goes on\."):
        save_or_warn(lambda: atomic_write_text(tmp_path / "gone" / "a", ""), "The search")


def test_an_interrupt_at_any_step_leaves_no_file(tmp_path):
    """KeyboardInterrupt comes between two lines of Python, wherever the signal arrives."""
    (tmp_path / "a").write_text("old")
    lines = 0

    def interrupt_at(line):
        left = line

        def trace(frame, event, _):
            nonlocal left
            if frame.f_code.co_filename != atomic.__file__ or frame.f_code.co_name in ("close", "_release"):
                return None
            if event == "line":
                left -= 1
                if left == 0:
                    raise KeyboardInterrupt
            return trace

        sys.settrace(trace)
        try:
            atomic_write_text(tmp_path / "a", "new")
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(None)
        return False

    while interrupt_at(lines + 1):
        lines += 1
        assert os.listdir(tmp_path) == ["a"]
        assert (tmp_path / "a").read_text() in ("old", "new")
    assert lines > 15
