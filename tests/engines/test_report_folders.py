"""Folders of reports that a cluster job wrote: read once, and only when complete."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.errors import InvalidTable, WrongSurvey
from sfumato.tables import count_files

SURVEY = sf.Survey("folders", sf.Uniform(7, 1))
REPORTS = np.arange(70, dtype=np.int32) % SURVEY.mechanism.outputs


def folder_of(path, *, fingerprint=SURVEY.fingerprint, id_="ab" * 16, complete=True):
    path.mkdir()
    for number, part in enumerate(np.split(REPORTS, [10, 45])):
        pq.write_table(
            pa.table({f"report@{fingerprint}#{id_}": part}),
            path / f"part-{number:05}.snappy.parquet",
        )
    (path / "_SUCCESS").write_text("") if complete else None
    return str(path)


def test_all_parts_are_counted_once(tmp_path):
    tally = count_files([folder_of(tmp_path / "a")], SURVEY)
    np.testing.assert_array_equal(
        tally.counts, np.bincount(REPORTS, minlength=SURVEY.mechanism.outputs)
    )


def test_two_jobs_add_up_and_a_copy_is_refused(tmp_path):
    first = folder_of(tmp_path / "a")
    second = folder_of(tmp_path / "b", id_="cd" * 16)
    assert count_files([first, second], SURVEY).reports == 2 * REPORTS.size
    with pytest.raises(InvalidTable, match="copy and a contain the same reports"):
        count_files([first, folder_of(tmp_path / "copy")], SURVEY)


def test_a_part_next_to_its_folder_is_refused(tmp_path):
    folder = folder_of(tmp_path / "a")
    with pytest.raises(InvalidTable, match="counted twice"):
        count_files([folder, f"{folder}/part-00000.snappy.parquet"], SURVEY)


def test_an_unfinished_job_is_refused(tmp_path):
    with pytest.raises(InvalidTable, match="_SUCCESS"):
        count_files([folder_of(tmp_path / "a", complete=False)], SURVEY)


def test_a_folder_without_reports_is_refused(tmp_path):
    (tmp_path / "_SUCCESS").write_text("")
    with pytest.raises(InvalidTable, match="not a complete folder"):
        count_files([str(tmp_path)], SURVEY)


def test_another_survey_is_refused(tmp_path):
    with pytest.raises(WrongSurvey):
        count_files([folder_of(tmp_path / "a", fingerprint="00" * 32)], SURVEY)
