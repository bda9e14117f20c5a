"""The index of a folder: what is embedded when, what it survives, and what it leaves out."""

import errno
import os
import shutil
import stat
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image
from tiny_photos import COLOURS

from pipeline_lib.contract.problems import ContractError
from pipeline_lib.images.decoding import ImageError, decode
from pipeline_lib.models.embedder import Embedder
from pipeline_lib.models.joint_space import JointSpace
from pipeline_lib.running.publishing import file_sha256
from pipeline_lib.search.index import (
    _add,
    _only_one,
    check_place,
    default_index,
    photo_paths,
    update_index,
    write_rows,
)


@pytest.fixture
def photos(colours, tmp_path):
    return shutil.copytree(colours / "photos", tmp_path / "photos")


@pytest.fixture
def update(colours, photos, tmp_path, monkeypatch):
    """Return a function that updates the index and returns it, and the photos that it embedded."""
    embedder = Embedder.load(colours / "model")
    embed_each = embedder.embed_each
    asked = []

    def counted(paths):
        asked.extend(path.name for path in paths)
        return embed_each(paths)

    monkeypatch.setattr(embedder, "embed_each", counted)

    def updated(folder=photos):
        asked.clear()
        found = update_index(embedder, folder, tmp_path / "index.parquet")
        return found, sorted(asked)

    return updated


NAMES = sorted(f"{name}.png" for name in COLOURS)


def test_vectors_are_those_of_the_model(update, photos, colours):
    index, embedded = update()
    assert index.paths == embedded == NAMES
    expected = Embedder.load(colours / "model").embed_images([photos / name for name in NAMES])
    np.testing.assert_allclose(index.vectors, expected, atol=1e-6)
    assert index.vectors.flags.c_contiguous
    assert index.vectors.dtype == np.float32


def vector(index, path):
    return index.vectors[index.paths.index(path)]


def test_only_new_and_changed_photos_are_embedded(update, photos):
    first, _ = update()
    assert update()[1] == []
    Image.new("RGB", (9, 9), "black").save(photos / "new.png")
    Image.new("RGB", (9, 9), "grey").save(photos / "red.png")
    index, embedded = update()
    assert embedded == ["new.png", "red.png"]
    np.testing.assert_array_equal(vector(index, "blue.png"), vector(first, "blue.png"))
    assert (vector(index, "red.png") != vector(first, "red.png")).any()


def test_a_changed_photo_is_embedded_once(update, photos):
    update()
    Image.new("RGB", (9, 9), "grey").save(photos / "red.png")
    assert update()[1] == ["red.png"]
    assert update()[1] == []


def test_moved_copied_and_touched_photos_are_known_by_their_content(update, photos):
    first, _ = update()
    (photos / "more").mkdir()
    (photos / "red.png").rename(photos / "more/rot.png")
    shutil.copy(photos / "blue.png", photos / "blau.png")
    os.utime(photos / "green.png")
    index, embedded = update()
    assert embedded == []
    assert index.paths == ["blau.png", "blue.png", "green.png", "more/rot.png", "white.png"]
    np.testing.assert_array_equal(vector(index, "more/rot.png"), vector(first, "red.png"))


def test_removed_photos_leave(update, photos):
    update()
    (photos / "red.png").unlink()
    assert "red.png" not in update()[0].paths
    assert "red.png" not in update()[0].paths


def test_unreadable_photos_are_listed_and_not_tried_again_until_they_change(update, photos):
    (photos / "broken.jpg").write_bytes(b"no photo")
    (photos / "notes.txt").write_text("no photo either")
    whole = (photos / "red.png").read_bytes()
    (photos / "cut.png").write_bytes(whole[: len(whole) // 2])
    index, _ = update()
    assert index.paths == NAMES
    assert index.unreadable.keys() == {"broken.jpg", "cut.png"}
    assert "expected an image in one of JPEG" in index.unreadable["broken.jpg"]
    again, embedded = update()
    assert (again.unreadable, embedded) == (index.unreadable, [])
    (photos / "cut.png").write_bytes(whole)
    assert "cut.png" in update()[0].paths


def test_no_photo_inherits_a_problem_by_its_content(update, photos):
    (photos / "broken.jpg").write_bytes(b"no photo")
    update()
    shutil.copy(photos / "broken.jpg", photos / "copy.jpg")
    assert update()[1] == ["copy.jpg"]


def test_of_equal_new_photos_one_is_embedded(update, photos, monkeypatch):
    monkeypatch.setattr("pipeline_lib.search.index._AT_ONCE", 3)  # copies within a part and beyond
    for name in ("a.png", "b.png", "y.png", "z.png"):
        shutil.copy(photos / "red.png", photos / name)
    index, embedded = update()
    assert embedded == ["a.png", "blue.png", "green.png", "white.png"]
    assert index.paths == sorted([*NAMES, "a.png", "b.png", "y.png", "z.png"])
    for name in ("b.png", "red.png", "y.png", "z.png"):
        np.testing.assert_array_equal(vector(index, name), vector(index, "a.png"))
    assert [index.paths[number] for number in index.originals] == [
        name if name in ("blue.png", "green.png", "white.png") else "a.png" for name in index.paths
    ]


def test_where_one_of_equal_new_photos_cannot_be_read_the_next_is_embedded(
    update, photos, monkeypatch
):
    shutil.copy(photos / "red.png", photos / "a.png")
    Image.new("RGB", (9, 9), "black").save(photos / "black.png")
    (photos / "broken.jpg").write_bytes(b"no photo")
    shutil.copy(photos / "broken.jpg", photos / "copy.jpg")
    monkeypatch.setattr("pipeline_lib.search.index._AT_ONCE", 5)  # the copy is of the next part

    def read(path):
        if Path(path).name == "a.png":
            raise ImageError("gone")
        return decode(path)

    monkeypatch.setattr("pipeline_lib.images.encoding.decode", read)
    index, embedded = update()
    assert index.unreadable.keys() == {"a.png", "broken.jpg", "copy.jpg"}
    assert index.paths == sorted([*NAMES, "black.png"])
    assert len(embedded) == len(set(embedded)) == 8


def test_a_photo_that_was_not_read_is_tried_again_though_size_and_time_stay(
    update, photos, tmp_path
):
    away = shutil.copy2(photos / "red.png", tmp_path / "away.png")
    (photos / "link.png").symlink_to(away)
    assert "link.png" in update()[0].unreadable
    (photos / "link.png").unlink()
    shutil.copy2(away, photos / "link.png")
    assert "link.png" in update()[0].paths


def test_a_photo_that_no_right_lets_read_is_tried_again(update, photos, monkeypatch):
    def refused(path):
        if path.suffix == ".png":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return file_sha256(path)

    Image.new("RGB", (9, 9), "black").save(photos / "black.png")
    with monkeypatch.context() as patched:
        patched.setattr("pipeline_lib.search.index.file_sha256", refused)
        with pytest.raises(ContractError, match=r"black\.png: Permission denied"):
            update()
    assert "black.png" in update()[0].paths


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.EMFILE, "Too many open files"),
        OSError(errno.EIO, "Input/output error"),
        MemoryError(),
    ],
)
def test_a_failure_of_the_machine_is_no_fact_about_a_photo(update, photos, monkeypatch, error):
    def fails(*given, **named):
        raise error

    update()
    Image.new("RGB", (9, 9), "black").save(photos / "black.png")
    with monkeypatch.context() as patched:
        patched.setattr("pipeline_lib.images.decoding.Image.open", fails)
        assert type(error).__name__ in update()[0].unreadable["black.png"]
    index, embedded = update()
    assert (embedded, "black.png" in index.paths) == (["black.png"], True)


def test_a_photo_that_stays_unread_does_not_have_the_index_written_again(update, photos, tmp_path):
    (photos / "link.png").symlink_to("/etc/hostname")
    update()
    before = (tmp_path / "index.parquet").stat().st_ino
    assert "link.png" in update()[0].unreadable
    assert (tmp_path / "index.parquet").stat().st_ino == before


def test_while_photos_are_out_of_reach_their_vectors_stay(update, photos):
    """As of a drive that is not mounted."""
    update()
    photos.rename(photos.with_name("away"))
    photos.mkdir()
    with pytest.raises(ContractError, match=r"expected photos .*, found none"):
        update()
    photos.rmdir()
    photos.with_name("away").rename(photos)
    index, embedded = update()
    assert (index.paths, embedded) == (NAMES, [])


def test_while_a_drive_below_is_not_mounted_the_vectors_of_its_photos_stay(update, photos):
    drive, away = photos / "nas/2019", photos.with_name("away")
    drive.mkdir(parents=True)
    for name in ("red.png", "blue.png"):
        (photos / name).rename(drive / name)
    found, _ = update()
    drive.rename(away)
    index, _ = update()
    assert "nas/2019/red.png" not in index.paths
    away.rename(drive)
    index, embedded = update()
    assert (index.paths, embedded) == (found.paths, [])


def test_photos_that_were_moved_out_of_a_folder_leave_nothing_behind(update, photos, tmp_path):
    (photos / "old").mkdir()
    (photos / "red.png").rename(photos / "old/red.png")
    update()
    (photos / "old/red.png").rename(photos / "red.png")
    update()
    paths = pq.read_table(tmp_path / "index.parquet")["path"].to_pylist()
    assert sorted(map(os.fsdecode, paths)) == NAMES


def test_a_photo_of_the_year_2400_is_indexed_and_stays_known(update, photos):
    """As a camera's broken clock dates it: beyond what 64 bits count in nanoseconds."""
    os.utime(photos / "red.png", (13_569_465_600, 13_569_465_600))
    assert update()[0].paths == NAMES
    assert update()[1] == []


@pytest.mark.parametrize("found", [errno.ENOTCONN, errno.EIO])
def test_a_photo_that_does_not_answer_is_named_and_the_others_are_found(
    update, photos, monkeypatch, found
):
    """As behind a link to a drive of the network that is gone."""
    update()
    hide("red.png", monkeypatch, found)
    index, _ = update()
    assert "red.png" not in index.paths
    assert index.unreadable == {"red.png": os.strerror(found)}
    monkeypatch.undo()
    index, embedded = update()
    assert (index.paths, embedded) == (NAMES, [])


def test_a_link_to_a_name_that_is_too_long_is_named(update, photos):
    (photos / "long.png").symlink_to(300 * "x")
    index, _ = update()
    assert index.paths == NAMES
    assert [*index.unreadable] == ["long.png"]


def test_on_a_file_system_without_locks_it_says_that_the_index_may_lie_elsewhere(
    update, monkeypatch, tmp_path
):
    def flock(*_):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr("fcntl.flock", flock)
    said = "found: a file system without locks. Name a file elsewhere with --index"
    with pytest.raises(ContractError, match=said):
        check_place(tmp_path / "index.parquet")
    with pytest.raises(ContractError, match=said):
        update()


def test_a_place_where_another_process_is_at_work_is_one(tmp_path):
    with _only_one(tmp_path / "index.parquet"):
        check_place(tmp_path / "index.parquet")


def test_many_photos_that_cannot_be_read_are_counted(update, photos):
    for path in photos.iterdir():
        path.unlink()
    for number in range(25):
        (photos / f"{number:02}.png").write_bytes(b"no photo %d" % number)
    with pytest.raises(ContractError) as raised:
        update()
    lines = str(raised.value).splitlines()
    assert "00.png: expected an image" in lines[1]
    assert (len(lines), lines[-1]) == (22, "  - and 5 more")


def test_a_folder_that_no_right_lets_list_is_named_and_its_vectors_stay(
    update, photos, monkeypatch, capsys
):
    (photos / "private").mkdir()
    shutil.copy(photos / NAMES[0], photos / "private/own.png")
    with open(photos / "private/own.png", "ab") as file:
        file.write(b"x")
    assert "own.png" in update()[1]
    scandir = os.scandir

    def refused(path):
        if str(path).endswith("private"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refused)
    assert update()[0].paths == NAMES
    assert f"warning: {photos / 'private'}: Permission denied" in capsys.readouterr().err
    monkeypatch.setattr(os, "scandir", scandir)
    assert update()[1] == []


def hide(name, monkeypatch, error=errno.EACCES):
    """Let no right see a photo, or another error of the system."""
    stat = os.stat

    def refused(path, **options):
        if str(path).endswith(name):
            raise OSError(error, os.strerror(error), str(path))
        return stat(path, **options)

    def digest(path):
        path.stat()
        return path.name

    monkeypatch.setattr(os, "stat", refused)
    monkeypatch.setattr("pipeline_lib.search.index.file_sha256", digest)


def test_where_no_right_lets_see_photos_their_vectors_stay(update, photos, monkeypatch):
    update()
    hide("red.png", monkeypatch)
    (photos / "green.png").unlink()  # what is written anew keeps them, too
    assert update()[0].unreadable == {"red.png": "Permission denied"}
    monkeypatch.undo()
    assert "red.png" in update()[0].paths
    assert update()[1] == []


def test_a_photo_that_changes_while_it_is_read_hands_its_copies_no_vector(
    update, photos, colours, tmp_path, monkeypatch
):
    shutil.copy(photos / "red.png", photos / "copy.png")  # stands before it
    digest = file_sha256

    def meanwhile(path):
        found = digest(path)
        if path.name == "copy.png":
            Image.new("RGB", (30, 30), "blue").save(path)
        return found

    monkeypatch.setattr("pipeline_lib.search.index.file_sha256", meanwhile)
    assert update()[0].unreadable == {"copy.png": "has changed while it was read"}
    monkeypatch.setattr("pipeline_lib.search.index.file_sha256", digest)
    index = update()[0]
    alone = update_index(Embedder.load(colours / "model"), photos, tmp_path / "new.parquet")
    assert index.paths == alone.paths
    np.testing.assert_array_equal(index.vectors, alone.vectors)


def test_a_photo_that_no_right_lets_see_is_named(update, photos, monkeypatch):
    (photos / "black.png").write_bytes(b"x")
    hide("black.png", monkeypatch)
    assert update()[0].unreadable == {"black.png": "Permission denied"}


def test_an_indexed_photo_that_no_right_lets_see_any_more_is_none(update, monkeypatch):
    index = update()[0]
    number = index.paths.index("red.png")
    hide("red.png", monkeypatch)
    with pytest.raises(ContractError, match=f"photo {number}: expected a file of the folder"):
        index.file(number)


def test_what_is_gone_since_it_was_listed_and_what_is_no_file_are_left_out(
    update, photos, monkeypatch
):
    os.mkfifo(photos / "pipe.png")
    monkeypatch.setattr(
        "pipeline_lib.search.index.photo_paths",
        lambda folder, unlisted: [*photo_paths(folder, unlisted), "gone.png"],
    )
    index, _ = update()
    assert (index.paths, index.unreadable) == (NAMES, {})


def test_an_index_that_the_machine_fails_to_read_is_kept(update, tmp_path, monkeypatch):
    def fails(*given, **named):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    update()
    monkeypatch.setattr("pyarrow.parquet.read_table", fails)
    before = (tmp_path / "index.parquet").read_bytes()
    with pytest.raises(OSError, match="Input/output"):
        update()
    assert (tmp_path / "index.parquet").read_bytes() == before


def test_cameras_may_end_names_of_photos_in_capitals(tmp_path):
    for name in ("DSC1.JPG", "a.Jpeg", "b.png", "JPG", "notes.TXT"):
        (tmp_path / name).touch()
    assert photo_paths(tmp_path) == ["DSC1.JPG", "a.Jpeg", "b.png"]


def test_nothing_outside_the_folder_is_read(update, photos, tmp_path):
    shutil.copy(photos / "red.png", tmp_path / "secret.png")
    (photos / "link.png").symlink_to(tmp_path / "secret.png")
    (photos / "inside.png").symlink_to("red.png")
    index, _ = update()
    assert index.paths == sorted([*NAMES, "inside.png"])
    assert "leads out of the folder" in index.unreadable["link.png"]


def test_a_photo_that_became_a_link_out_of_the_folder_is_named_each_time(update, photos, tmp_path):
    """Moved, it has the size and the time that it had."""
    update()
    (photos / "red.png").rename(tmp_path / "red.png")
    (photos / "red.png").symlink_to(tmp_path / "red.png")
    for _ in range(2):
        index, embedded = update()
        assert index.paths == [name for name in NAMES if name != "red.png"]
        assert "leads out of the folder" in index.unreadable["red.png"]
        assert embedded == []


def test_a_photo_that_became_a_link_is_not_handed_out(update, photos, tmp_path):
    index, _ = update()
    (photos / "red.png").rename(tmp_path / "secret.png")
    (photos / "red.png").symlink_to(tmp_path / "secret.png")
    with pytest.raises(ContractError, match="expected a file of the folder"):
        index.file(index.paths.index("red.png"))
    for number in (-1, len(index.paths)):
        with pytest.raises(ContractError, match="expected 0 to 3"):
            index.file(number)


def test_names_that_are_not_utf8(update, photos):
    os.rename(photos / "red.png", os.fsencode(photos) + b"/\xffrot.png")
    assert os.fsdecode(b"\xffrot.png") in update()[0].paths
    assert update()[1] == []


def test_what_is_done_survives_an_interruption(update, photos, colours, tmp_path, monkeypatch):
    update()
    Image.new("RGB", (9, 9), "black").save(photos / "black.png")
    Image.new("RGB", (9, 9), "grey").save(photos / "grey.png")
    embedder = Embedder.load(colours / "model")

    def stopped(paths):
        yield np.zeros(16, np.float32)
        raise KeyboardInterrupt

    monkeypatch.setattr(embedder, "embed_each", stopped)
    with pytest.raises(KeyboardInterrupt):
        update_index(embedder, photos, tmp_path / "index.parquet")
    assert update()[1] == ["grey.png"]


def test_what_is_done_survives_a_kill(update, photos, colours, tmp_path, monkeypatch):
    """A killed process ends without a word: what stays is the file as it was just then."""
    embedder, file = Embedder.load(colours / "model"), tmp_path / "index.parquet"

    def killed(paths):
        yield np.zeros(16, np.float32)
        shutil.copy(file, tmp_path / "left.parquet")
        raise KeyboardInterrupt

    monkeypatch.setattr(embedder, "embed_each", killed)
    monkeypatch.setattr("pipeline_lib.search.index._KEPT_EVERY", 0, raising=False)
    with pytest.raises(KeyboardInterrupt):
        update_index(embedder, photos, file)
    (tmp_path / "left.parquet").rename(file)
    assert update()[1] == NAMES[1:]


def test_an_index_that_is_soon_done_is_written_once(update, tmp_path, monkeypatch):
    written = []
    monkeypatch.setattr(
        "pipeline_lib.search.index.write_rows",
        lambda *given: [written.append(1), write_rows(*given)][1],
    )
    update()
    assert len(written) == 1


def test_an_index_is_written_for_a_tenth_of_the_time_at_most(monkeypatch):
    """One of very many photos takes a minute."""
    now, writes = [0], []
    monkeypatch.setattr("pipeline_lib.search.index.time", SimpleNamespace(monotonic=lambda: now[0]))

    def embedded():
        for number in range(10_000):
            now[0] += 1
            yield f"{number}.jpg", (1, 1, str(number), "", None)

    def write():
        now[0] += 60
        writes.append(60)

    _add({}, embedded(), write)
    assert 0.09 < sum(writes) / now[0] < 0.11


def test_moved_photos_stay_known_after_an_interruption(
    update, photos, colours, tmp_path, monkeypatch
):
    update()
    (photos / "more").mkdir()
    for name in NAMES:
        (photos / name).rename(photos / "more" / name)
    Image.new("RGB", (9, 9), "black").save(photos / "black.png")
    embedder = Embedder.load(colours / "model")

    def stopped(path):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("pipeline_lib.search.index.file_sha256", stopped)
        with pytest.raises(KeyboardInterrupt):
            update_index(embedder, photos, tmp_path / "index.parquet")
    assert update()[1] == ["black.png"]


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" * 100])
def test_a_damaged_index_is_made_anew(update, tmp_path, content):
    (tmp_path / "index.parquet").write_bytes(content)
    assert update()[1] == NAMES
    assert update()[1] == []


@pytest.mark.parametrize("column", ["path", "problem", "vector", "vector of infinity"])
def test_an_index_that_lacks_something_is_made_anew(update, tmp_path, column):
    update()
    file = tmp_path / "index.parquet"
    table = pq.read_table(file)
    place = table.schema.get_field_index(column.split()[0])
    field, values = table.schema.field(place), table.column(place).to_pylist()
    values[0] = None if column != "vector of infinity" else [np.inf] * len(values[0])
    pq.write_table(table.set_column(place, field, pa.array(values, field.type)), file)
    index, embedded = update()
    assert (index.paths, embedded) == (NAMES, NAMES)


def test_a_changed_byte_of_an_index_never_passes(update, tmp_path):
    before, _ = update()
    file = tmp_path / "index.parquet"
    whole = file.read_bytes()
    for place in np.random.default_rng(0).choice(np.arange(4, len(whole)), 40, replace=False):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        try:
            found, _ = update()
        except ContractError:  # the names of its columns: it is no index any more, and is named
            continue
        assert found.paths == before.paths
        np.testing.assert_array_equal(found.vectors, before.vectors)


@pytest.mark.parametrize("other", ["text", "table", "a name that is no UTF-8"])
def test_a_file_that_is_no_index_is_left_as_it_is(update, tmp_path, other):
    file = tmp_path / "index.parquet"
    if other == "text":
        file.write_text("my captions")
    else:
        pq.write_table(pa.table({"name": [1]}), file, store_schema=False)
    if other.startswith("a name"):
        file.write_bytes(file.read_bytes().replace(b"name", b"n\xe7me"))
    before = file.read_bytes()
    with pytest.raises(ContractError, match=r"index\.parquet: expected an index of photos, found"):
        update()
    assert file.read_bytes() == before


def test_what_is_no_file_is_left_as_it_is(update, tmp_path):
    """As root, /dev/null would be a file afterwards."""
    os.mkfifo(tmp_path / "index.parquet")
    with pytest.raises(ContractError, match=r"index\.parquet: expected an index of photos, found"):
        update()
    assert stat.S_ISFIFO(os.stat(tmp_path / "index.parquet").st_mode)


def test_the_index_of_another_folder_is_not_replaced(update, photos, tmp_path):
    update()
    other = shutil.copytree(photos, tmp_path / "other")
    with pytest.raises(ContractError, match=r"index of \S+other, found that of \S+photos, which"):
        update(other)
    assert update()[1] == []


def test_nor_is_it_by_another_model(update, colours, photos, tmp_path):
    update()
    model = shutil.copytree(colours / "model", tmp_path / "model")
    (model / "recipe.json").write_text("{}")
    (model / "SHA256SUMS").unlink()
    other, file = shutil.copytree(photos, tmp_path / "other"), tmp_path / "index.parquet"
    with pytest.raises(ContractError, match=r"index of \S+other, found that of \S+photos, which"):
        update_index(Embedder.load(model), other, file)
    assert update()[1] == []


def test_photos_of_a_folder_that_was_moved_are_known_by_their_content_alone(
    update, photos, tmp_path
):
    """Unpacked from an archive, other photos may have the same name, size and time."""
    for colour, name in (("black", "a.ppm"), ("grey", "b.ppm")):
        Image.new("RGB", (9, 9), colour).save(photos / name)
        os.utime(photos / name, ns=(1, 1))
    before, _ = update()
    moved = photos.rename(tmp_path / "moved")
    os.rename(moved / "a.ppm", moved / "c.ppm")
    os.rename(moved / "b.ppm", moved / "a.ppm")
    index, embedded = update(moved)
    assert embedded == []
    np.testing.assert_array_equal(vector(index, "a.ppm"), vector(before, "b.ppm"))
    np.testing.assert_array_equal(vector(index, "c.ppm"), vector(before, "a.ppm"))
    assert update(moved)[1] == []


def test_what_else_lies_beside_a_model_makes_no_other_model_of_it(colours, photos, tmp_path):
    model = shutil.copytree(colours / "model", tmp_path / "model")
    before = default_index(model, photos)
    (model / "notes.txt").write_text("of mine")
    assert default_index(model, photos) == before


def test_without_a_home_it_says_where_the_index_may_lie(colours, photos, monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", _nobody)
    with pytest.raises(ContractError, match="Set HOME, or name a file with --index"):
        default_index(colours / "model", photos)


def _nobody():
    raise RuntimeError("Could not determine home directory.")


def test_where_no_index_can_be_written_it_says_that_it_may_lie_elsewhere(colours, photos, tmp_path):
    (tmp_path / "cache").write_text("no folder")
    file = tmp_path / "cache/polyview/index.parquet"
    with pytest.raises(ContractError, match="Name a file elsewhere with --index"):
        update_index(Embedder.load(colours / "model"), photos, file)


def test_the_index_of_another_model_is_made_anew(update, colours, photos, tmp_path):
    update()
    other = shutil.copytree(colours / "model", tmp_path / "other")
    (other / "recipe.json").write_text("{}")
    (other / "SHA256SUMS").unlink()  # as in a model saved before there were sums
    file = tmp_path / "index.parquet"
    update_index(Embedder.load(other), photos, file)
    assert update()[1] == NAMES
    assert default_index(other, photos) != default_index(colours / "model", photos)


def test_of_a_model_that_is_replaced_while_it_is_read_no_vector_is_taken_for_the_new_ones(
    colours, photos, tmp_path
):
    """``dvc repro`` may publish between the loading of a model and the first photo."""
    model = shutil.copytree(colours / "model", tmp_path / "model")
    file = default_index(model, photos)
    old = Embedder.load(model)
    space = JointSpace.load(model)
    with torch.no_grad():
        for weight in space.parameters():
            weight.neg_()
    shutil.rmtree(model)
    space.save(model, old.preprocessing, {})
    update_index(old, photos, tmp_path / "index.parquet")
    new = Embedder.load(model)
    found = update_index(new, photos, tmp_path / "index.parquet")
    expected = update_index(new, photos, tmp_path / "alone.parquet")
    np.testing.assert_array_equal(found.vectors, expected.vectors)
    assert default_index(model, photos) == file, "the index before would lie there for ever"


def test_two_at_once_end_with_one_whole_index(update, colours, photos, tmp_path):
    def one():
        embedder = Embedder.load(colours / "model")
        update_index(embedder, photos, tmp_path / "index.parquet")

    threads = [threading.Thread(target=one) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert update()[1] == []
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".index.parquet.lock", "index.parquet", "photos",
    ]  # fmt: skip


def test_a_file_of_the_user_beside_the_index_is_left_as_it_is(update, tmp_path):
    (tmp_path / "index.lock").write_text("mine")
    update()
    assert (tmp_path / "index.lock").read_text() == "mine"


def test_a_folder_without_photos_is_refused(update, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ContractError, match=r"expected photos \(.jpg, .*found none"):
        update(tmp_path / "empty")
