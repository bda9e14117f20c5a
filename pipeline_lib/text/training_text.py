"""What word vectors and lexicons may see of a pair set: its training captions."""

import pandas as pd


def training_captions(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return the training captions of a pair set; one of two sets counts once."""
    return pairs[pairs["split"] == "train"].drop_duplicates("caption_id")


def training_sentences(pairs: pd.DataFrame) -> dict[str, list[list[str]]]:
    """Return the tokens of every training caption by language; a caption of two sets counts once.

    Args:
        pairs: Pairs table (contract.tables.PAIRS).
    """
    return {
        language: [list(tokens) for tokens in rows["tokens"]]
        for language, rows in training_captions(pairs).groupby("language", sort=True)
    }


def training_words(pairs: pd.DataFrame) -> dict[str, set[str]]:
    """Return the words of the training captions by language."""
    return {
        language: {word for tokens in sentences for word in tokens}
        for language, sentences in training_sentences(pairs).items()
    }


def training_images(pairs: pd.DataFrame) -> list[str]:
    """Return the ids of the images that the training captions are about, sorted."""
    return sorted(set(pairs.loc[pairs["split"] == "train", "image_id"]))
