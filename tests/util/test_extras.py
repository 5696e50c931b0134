"""Packages of extras that are not there."""

import sys

import pytest

from milpbn.errors import InputError
from milpbn.util.extras import import_extra


def test_a_package_that_is_not_there_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(InputError) as error:
        import_extra("onnx", "formats", "An ONNX file", "Write another format.")
    said = "An ONNX file needs the package onnx; install it with: pip install 'milpbn[formats]'. Write another format."
    assert str(error.value) == said


def test_a_package_that_lacks_another_one_says_so(tmp_path, monkeypatch):
    (tmp_path / "half_there.py").write_text("import not_there_at_all\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        InputError, match=r"needs the package half_there \(No module named 'not_there_at_all'\); install"
    ):
        import_extra("half_there", "formats", "This conversion")


def test_a_module_of_a_package_is_imported():
    assert import_extra("json.decoder", "test", "This test").JSONDecoder is not None
