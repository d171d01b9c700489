"""Files appear whole or not at all."""

import os
import stat
import subprocess
import sys

import pytest

import sfumato as sf
from sfumato.errors import InvalidSetting
from sfumato.foundation.files import atomic_file, write_atomically


def test_a_file_appears_when_it_is_complete(tmp_path):
    target = tmp_path / "a.json"
    with atomic_file(target) as file:
        file.write(b"half")
        assert not target.exists()
    assert target.read_bytes() == b"half"
    assert list(tmp_path.iterdir()) == [target]


def test_failed_write_keeps_the_old_file_only(tmp_path):
    target = tmp_path / "a.json"
    target.write_bytes(b"before")
    with pytest.raises(KeyboardInterrupt), atomic_file(target) as file:
        file.write(b"half")
        raise KeyboardInterrupt
    assert target.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [target]


def test_permissions_are_those_of_any_new_file(tmp_path):
    program = (
        "import sys; from sfumato.foundation.files import write_atomically; "
        "write_atomically(sys.argv[1], b'')"
    )
    subprocess.run([sys.executable, "-c", program, tmp_path / "a.json"], check=True, umask=0o027)
    assert stat.S_IMODE((tmp_path / "a.json").stat().st_mode) == 0o640


def test_permissions_may_be_set(tmp_path):
    write_atomically(tmp_path / "a.json", b"", mode=0o600)
    assert stat.S_IMODE((tmp_path / "a.json").stat().st_mode) == 0o600


def test_umask_is_not_changed(tmp_path, monkeypatch):
    monkeypatch.setattr("os.umask", None)  # all threads share it
    write_atomically(tmp_path / "a.json", b"all")
    assert (tmp_path / "a.json").read_bytes() == b"all"


def test_links_are_followed(tmp_path):
    (tmp_path / "real").write_bytes(b"before")
    (tmp_path / "link").symlink_to("real")
    with atomic_file(tmp_path / "link") as file:
        file.write(b"after")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"after"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can create a link of another user")
@pytest.mark.parametrize(
    ("mode", "owner", "is_followed"),
    [(0o1777, 12345, False), (0o1777, 0, True), (0o777, 12345, True), (0o1755, 12345, True)],
)
def test_links_of_others_in_shared_folders_are_refused(tmp_path, mode, owner, is_followed):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(mode)
    real = tmp_path / "real"
    real.write_bytes(b"before")
    link = shared / "link"
    link.symlink_to(real)
    os.lchown(link, owner, owner)
    if is_followed:
        write_atomically(link, b"after")
        assert real.read_bytes() == b"after"
        return
    with pytest.raises(InvalidSetting, match="symbolic link of another user"):
        write_atomically(link, b"after")
    assert real.read_bytes() == b"before"


def test_missing_folders_are_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    message = "cannot write nodir/a.json: there is no folder nodir. Create it first."
    with pytest.raises(InvalidSetting) as caught:
        write_atomically("nodir/a.json", b"")
    assert str(caught.value) == message
    assert list(tmp_path.iterdir()) == []


def test_results_name_missing_folders(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    survey = sf.Survey("lunch", sf.Uniform(["a", "b"], 1))
    tally = survey.tally(survey.privatize(["a", "b"] * 10))
    estimate = survey.estimate(tally)
    writers = {"x.toml": survey.save, "x.json": survey.save, "x.npz": tally.save}
    for name, write in {**writers, "x.html": estimate.to_html}.items():
        with pytest.raises(
            InvalidSetting, match=rf"^cannot write nodir/{name}: there is no folder"
        ):
            write(f"nodir/{name}")


def test_special_files_are_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"), atomic_file(tmp_path / "pipe"):
        pass
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
