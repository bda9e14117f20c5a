"""params.yaml: tokenisers, word vectors and bilingual lexicons."""

from typing import Annotated, Literal

from pydantic import Field

from pipeline_lib.settings.strict import Count, Language, Name, Rate, Seed, Several, Strict


class Tokenizer(Strict):
    """How the captions of one language become tokens.

    Attributes:
        tokenizer: ``moses`` (languages that Moses has rules for), ``mecab`` (Japanese), ``jieba``
            (Chinese), ``unicode`` (others with spaces between words), or ``whitespace``, for text
            whose words stand between spaces.
        lowercase: Whether captions become lower case first.
        normalize: Whether Moses' rules make punctuation alike first. By ``true``, as in Moses'
            script, ’ is a quotation mark unless it stands between two of a to z; by ``unicode`` it
            is an apostrophe.
    """

    tokenizer: Literal["moses", "mecab", "jieba", "unicode", "whitespace"]
    lowercase: bool
    normalize: bool | Literal["unicode"]


class FastTextVectors(Strict):
    """Skip-gram vectors with character n-grams, trained on captions (Bojanowski et al. 2017).

    Attributes:
        source: Table of pairs (data/pairs/NAME.parquet) whose training captions they learn from.
        pairs: Pair set whose training words get a vector too, or ``none``.
        dim: Size of a vector.
        epochs: Passes over the captions.
        window: Most words between a word and the context that it predicts.
        min_count: Rarer words are no contexts and have no vector but that of their n-grams.
        min_n: Characters of the shortest n-gram.
        max_n: Characters of the longest.
        buckets: Size of the table that n-grams are hashed to.
        negatives: Words drawn as negatives for each context.
        subsampling: Words more frequent than this share are left out at random.
        learning_rate: At the start; it falls to nearly 0.
        seed: Of the initial vectors and all draws.
    """

    method: Literal["fasttext"]
    source: str
    pairs: Name
    dim: Count
    epochs: Count
    window: Count
    min_count: Count
    min_n: Count
    max_n: Count
    buckets: Count
    negatives: Count
    subsampling: Rate
    learning_rate: Rate
    seed: Seed


class VectorFiles(Strict):
    """Trained vectors, read from text files in word2vec's form (fastText's ``.vec``).

    Attributes:
        source: Folder of the files.
        pairs: Pair set whose training words are looked up.
        files: File name in that folder, by language.
    """

    method: Literal["files"]
    source: str
    pairs: Name
    files: Annotated[dict[Language, str], Field(min_length=1)]


class LatentSemanticVectors(Strict):
    """Vectors of words that are said of the same photos, in all languages at once.

    Attributes:
        source: Table of pairs (data/pairs/NAME.parquet) whose training captions they learn from.
        pairs: Always ``none``: all words of the source get a vector.
        dim: Size of a vector.
        min_count: Words of fewer photos get a vector, but decide none.
    """

    method: Literal["latent_semantic"]
    source: str
    pairs: Literal["none"]
    dim: Count
    min_count: Count


WordVectorSource = Annotated[
    FastTextVectors | LatentSemanticVectors | VectorFiles, Field(discriminator="method")
]


class Lexicon(Strict):
    """Translations of the training words of a pair set, one per line in MUSE's form.

    The training files may repeat what the test files have, as in Mohammadshahi et al. 2019: each
    lexicon is written by that protocol, ``paper``, and by one without test words, ``clean``.

    Attributes:
        source: Folder of the files.
        pairs: Pair set whose training words are kept.
        languages: Source and target.
        train: Files to learn from.
        test: Files to test on.
    """

    source: str
    pairs: Name
    languages: Annotated[Several[Language], Field(min_length=2, max_length=2)]
    train: Several[str]
    test: Several[str]
