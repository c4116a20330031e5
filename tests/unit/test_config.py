"""Configuration: read whole or refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from edge.config import Config, data_directory, load, models_directory
from edge.errors import InvalidArgument


def loaded(folder: Path, text: str) -> Config:
    path = folder / "config.toml"
    path.write_text(text, "utf-8")
    return load(path)


def test_without_a_file_the_defaults_hold(tmp_path: Path) -> None:
    assert load(None) == load(tmp_path / "none.toml") == Config()


def test_a_file_changes_only_what_it_names(tmp_path: Path) -> None:
    config = loaded(tmp_path, '[limits]\ntop_k = 7\n[recall]\nlanguage = "en"\ntriggers = ["想一想"]\n')
    assert (config.limits.top_k, config.recall.language, config.recall.triggers) == (7, "en", ("想一想",))
    assert config.embedding == Config().embedding
    assert config.limits.text_bytes == Config().limits.text_bytes


def test_a_table_of_strings_is_read_whole_and_frozen(tmp_path: Path) -> None:
    config = loaded(tmp_path, "[admission.patterns]\nplate = '沪A[0-9]{5}'\n\"工号\" = 'E-[0-9]{6}'\n")
    assert dict(config.admission.patterns) == {"plate": "沪A[0-9]{5}", "工号": "E-[0-9]{6}"}
    with pytest.raises(TypeError):
        config.admission.patterns["plate"] = ""  # type: ignore[index]  # that it cannot be set is the point


def test_half_lives_are_read_by_kind(tmp_path: Path) -> None:
    decay = loaded(tmp_path, "[decay]\nhalf_life_days = 45\n[decay.kinds]\npreference = 60\n").decay
    assert (decay.half_life_days, dict(decay.kinds), decay.cold) == (45.0, {"preference": 60.0}, "file")


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("[admission]\npatterns = 3\n", "admission.patterns"),
        ("[admission.patterns]\nplate = 3\n", "admission.patterns.plate"),
        ("[admission.patterns.deep]\nplate = 'x'\n", "admission.patterns.deep"),
        ("[admission]\nkeep = 'greeting'\n", "admission.keep"),
        ("[admission]\nredact = 'no'\n", "admission.redact"),
        ("[decay]\nhalf_life_days = 13\n", "decay.half_life_days"),
        ("[decay]\nhalf_life_days = nan\n", "decay.half_life_days"),
        ("[decay]\nkinds = 30\n", "decay.kinds"),
        ("[decay.kinds]\npreference = 61\n", "decay.kinds.preference"),
        ("[decay.kinds]\npreference = 'long'\n", "decay.kinds.preference"),
        ("[decay]\narchive_below = 0\n", "decay.archive_below"),
        ("[decay]\narchive_below = 1\n", "decay.archive_below"),
        ("[decay]\ncold_after_days = 0.5\n", "decay.cold_after_days"),
        ("[decay]\ncold = 'burn'\n", "decay.cold"),
        ("[decay]\nenabled = 'no'\n", "decay.enabled"),
        ("[limits]\ntop_k = 0\n", "limits.top_k"),
        ("[limits]\ntop_k = true\n", "limits.top_k"),
        ("[limits]\ntop_k = 1.5\n", "limits.top_k"),
        ("[limits]\ntop_q = 5\n", "limits.top_q"),
        ("[storage]\nsegment_bytes = 0\n", "storage.segment_bytes"),
        ("[storage]\nsnapshot_interval = -1\n", "storage.snapshot_interval"),
        ("[embedding]\nworkers = 9999\n", "embedding.workers"),
        ('[embedding]\ndevice = "tpu"\n', "embedding.device"),
        ("[embedding]\nidle_release = inf\n", "embedding.idle_release"),
        ("[embedding]\nbatch_tokens = " + "9" * 400 + "\n", "embedding.batch_tokens"),
        ("[embedding]\ncalibrate = 1\n", "embedding.calibrate"),
        ("[governor]\ntrip = 1\n", "governor.trip"),
        ("[governor]\nmargin = nan\n", "governor.margin"),
        ("[governor]\ninterval = inf\n", "governor.interval"),
        ('[recall]\nlanguage = "fr"\n', "recall.language"),
        ("[recall]\nlanguage = 3\n", "recall.language"),
        ('[recall]\ntriggers = "x"\n', "recall.triggers"),
        ('[recall]\ntriggers = [""]\n', "recall.triggers"),
        ("limits = 3\n", "limits"),
        ("nonsense = 1\n", "nonsense"),
        ("[limits\n", "config"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(tmp_path: Path, text: str, field: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        loaded(tmp_path, text)
    assert caught.value.field == field


def test_zero_workers_mean_one_a_core(tmp_path: Path) -> None:
    assert loaded(tmp_path, "[embedding]\nworkers = 0\n").embedding.workers == 0


def test_the_directories_follow_the_environment_then_systemd_then_the_user() -> None:
    assert data_directory({"EDGE_DATA": "/a", "STATE_DIRECTORY": "/b"}) == Path("/a")
    assert data_directory({"STATE_DIRECTORY": "/b:/c"}) == Path("/b")
    assert data_directory({}).name == "edge-memory"
    assert models_directory({"EDGE_MODELS": "/m"}) == Path("/m")
    assert models_directory({"STATE_DIRECTORY": "/b"}) == Path("/b/models")
