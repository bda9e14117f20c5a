"""Captions that a user adds to the photos of a published data set."""

from pathlib import Path

import pandas as pd
import pytest
from raw_corpora import texts, write_flickr8k, write_lines, write_multi30k

from pipeline_lib.contract.problems import ContractError
from pipeline_lib.corpora.readers import PUBLISHED, READERS, read_corpus

FLICKR8K = {"split_column": "flickr8k_split"}
MULTI30K = {"splits": ["train", "val", "test"]}
SPANISH = ["image\tlanguage\ttext", "11.jpg\tes\tUn perro.", "21.jpg\tes\tDos perros."]


def add(raw: Path, lines: list[str] = SPANISH) -> Path:
    write_lines(raw / "added_captions.tsv", lines)
    return raw


def flickr8k(raw: Path, languages: list[str]):
    return read_corpus("flickr8k", raw, "f", languages=languages, **FLICKR8K)


def refusal(raw: Path, languages: list[str]) -> str:
    with pytest.raises(ContractError) as caught:
        flickr8k(raw, languages)
    return str(caught.value)


@pytest.mark.parametrize(
    ("reader", "write", "options"),
    [("flickr8k", write_flickr8k, FLICKR8K), ("multi30k", write_multi30k, MULTI30K)],
)
def test_a_further_language_joins_the_photos_and_splits_of_the_data_set(
    tmp_path, reader, write, options
):
    raw, languages = add(write(tmp_path)), ["en", "de"]
    plain = READERS[reader](raw, "f", languages=languages, **options)
    found = read_corpus(reader, raw, "f", languages=["en", "es", "de"], **options)
    own = found.captions["language"] == "es"
    pd.testing.assert_frame_equal(found.captions[~own].reset_index(drop=True), plain.captions)
    pd.testing.assert_frame_equal(found.images, plain.images)
    assert [*found.captions[own]["caption_id"]] == ["f/11/es/caption/0", "f/21/es/caption/0"]
    photos = plain.images.set_index("path")
    for name, image in found.captions[own].set_index("text")[["image_id", "split"]].iterrows():
        expected = photos.loc["11.jpg" if name == "Un perro." else "21.jpg"]
        assert (image["image_id"], image["split"]) == (expected["image_id"], expected["split"])


def test_what_is_not_asked_for_is_left_out(tmp_path):
    raw = write_flickr8k(tmp_path)
    plain = flickr8k(raw, ["en", "ja"])
    add(raw, [*SPANISH, "11.jpg\tit\tUn cane."])
    pd.testing.assert_frame_equal(flickr8k(raw, ["en", "ja"]).captions, plain.captions)
    assert texts(flickr8k(raw, ["en", "it"]), language="it") == ["Un cane."]


@pytest.mark.parametrize("code", ["ES", "es-MX"])
def test_a_code_that_is_none_is_named_and_not_left_out(tmp_path, code):
    raw = add(write_flickr8k(tmp_path), [*SPANISH, f"11.jpg\t{code}\tOtro perro."])
    assert f"found {code!r}. Write es" in refusal(raw, ["en", "es"])


def test_what_translates_a_language_that_is_left_out_names_what_that_one_translated(tmp_path):
    header = "image\tlanguage\tannotation\tposition\ttext\ttranslation_of"
    own = ["11.jpg\tpt\ttranslation\t0\tUm cão.\ten/caption/0",
           "11.jpg\tes\ttranslation\t0\tUn perro.\tpt/translation/0"]  # fmt: skip
    raw = add(write_flickr8k(tmp_path), [header, *own])
    for languages, source in (
        (["en", "es"], "f/11/en/caption/0"),
        (["en", "pt", "es"], "f/11/en/caption/0"),
        (["de", "es"], None),
    ):
        captions = flickr8k(raw, languages).captions.set_index("caption_id")
        found = captions.loc["f/11/es/translation/0", "source_caption_id"]
        assert (None if pd.isna(found) else found) == source


def test_a_published_language_whose_file_is_not_there_can_be_added(tmp_path):
    """Nobody distributes Flickr8k's Japanese."""
    raw = write_flickr8k(tmp_path)
    for path in (raw / "flickr8k/captions").glob("ja.*"):
        path.unlink()
    assert "ja.machine_translation.tsv: expected this file" in refusal(raw, ["en", "ja"])
    add(raw, ["image\tlanguage\ttext", "11.jpg\tja\t犬が走る。"])
    assert texts(flickr8k(raw, ["en", "ja"]), language="ja") == ["犬が走る。"]


def test_translations_name_what_the_data_set_has_as_far_back_as_it_goes(tmp_path):
    """A translation of a translation that the data set has is one of that one's source."""
    raw = write_flickr8k(tmp_path)
    [source] = (
        flickr8k(raw, ["en", "fr"]).captions.set_index("caption_id").loc[["f/11/fr/translation/0"]]
    )["source_caption_id"]
    header = "image\tlanguage\tannotation\ttext\ttranslation_of"
    lines = [
        f"11.jpg\tes\t{kind}\tUn perro {place}.\t{of}"
        for place, (kind, of) in enumerate(
            [("translation", "en/caption/2"), ("machine", "fr/translation/0")]
        )
    ]
    found = flickr8k(add(raw, [header, *lines]), ["en", "fr", "es"]).captions
    spanish = found[found["language"] == "es"].set_index("annotation")["source_caption_id"]
    assert spanish["translation"] == "f/11/en/caption/2"
    assert spanish["machine"] == source == "f/11/en/caption/4"


def test_more_captions_of_a_language_that_the_data_set_has_take_free_positions(tmp_path):
    raw = write_flickr8k(tmp_path)
    header = "image\tlanguage\tposition\ttext"
    add(raw, [header, "11.jpg\ten\t5\tA sixth one.", "21.jpg\ten\t4\tA fifth one."])
    said = refusal(raw, ["en"])
    assert "added_captions.tsv:3: expected one that no caption of the data set has" in said
    assert ":2:" not in said
    add(raw, [header, "11.jpg\ten\t5\tA sixth one."])
    assert texts(flickr8k(raw, ["en"]), image_id="flickr:11")[-1] == "A sixth one."


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["image\tlanguage\ttext", "99.jpg\tes\tUn."], ":2: expected the path of a photo that the"),
        (["image\tlanguage\ttext", "11\tes\tUn."], "has captions of, such as 11.jpg, found '11'"),
        (["image\tsplit\tlanguage\ttext", "11.jpg\ttrain\tes\tUn."], "any of annotation, position"),
        (["image\tlanguage\ttext", "11.jpg\tes\t "], "expected a caption, found no text"),
        (
            [
                "image\tlanguage\tannotation\ttext\ttranslation_of",
                "11.jpg\tes\ttranslation\tUn.\ten/caption/9",
            ],
            "expected a caption of the same image as",
        ),
    ],
)
def test_what_cannot_be_added_is_named_with_its_line(tmp_path, lines, said):
    assert said in refusal(add(write_flickr8k(tmp_path), lines), ["en", "es"])


def test_a_language_that_neither_has_is_refused_with_the_place_for_it(tmp_path):
    raw = write_flickr8k(tmp_path)
    said = refusal(raw, ["en", "es"])
    assert "languages: expected some of en, zh, ja, de, fr, cs, or of captions that you add" in said
    assert f"{raw / 'added_captions.tsv'}; found es" in said
    assert "found eo" in refusal(add(raw), ["en", "es", "eo"])
    assert "which name the photos, beside es" in refusal(raw, ["es"])


def test_every_data_set_of_photos_with_languages_takes_more_of_them():
    assert {*PUBLISHED} == {*READERS} - {"table", "bitext"}


def test_captions_are_added_to_the_real_data_set(real_data, tmp_path):
    """A caption for each photo of the test split, beside the 40,000 that are published."""
    options = {"languages": ["en"], **FLICKR8K}
    plain = READERS["flickr8k"](real_data, "f", **options)
    for part in ("flickr8k", "multi30k"):
        (tmp_path / part).symlink_to(real_data / part)
    photos = plain.images[plain.images["split"] == "test"]["path"]
    add(tmp_path, ["image\tlanguage\ttext", *(f"{photo}\tes\tUna foto." for photo in photos)])
    options["languages"] = ["en", "es"]
    found = read_corpus("flickr8k", tmp_path, "f", **options).captions
    assert len(found) == len(plain.captions) + len(photos)
    own = found[found["language"] == "es"]
    assert [*own["split"].unique()] == ["test"]
    assert own["image_id"].nunique() == len(photos) > 800


def test_a_position_that_is_filled_in_and_taken_is_said_to_be_a_column(tmp_path):
    raw = add(write_flickr8k(tmp_path), ["image\tlanguage\ttext", "11.jpg\ten\tA sixth one."])
    assert "has (say in a column position which it is), found '0'" in refusal(raw, ["en"])


def test_languages_of_a_table_that_cannot_be_read_are_not_missed(tmp_path):
    lines = ["image\tsplit\tlanguage\ttext", "11.jpg\ttrain\tes\tUn."]
    said = refusal(add(write_flickr8k(tmp_path), lines), ["en", "es"])
    assert "1 problem(s)" in said
    assert "languages:" not in said
