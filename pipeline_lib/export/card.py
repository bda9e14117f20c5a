"""The model card of an exported model: what it is, what it learnt from, how well it does."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from ruamel.yaml import YAML, YAMLError

from pipeline_lib.contract.problems import ContractError
from pipeline_lib.contract.reports import read_report
from pipeline_lib.export.licences import BACKBONE_LICENCES, DATA_LICENCES, READER_LICENCES
from pipeline_lib.export.sources import readers_of, sources_of
from pipeline_lib.export.token_ids import OOV, id_rule
from pipeline_lib.images.transforms import TRANSFORMS
from pipeline_lib.models.embedder import Embedder
from pipeline_lib.models.places import recipe_of, seed_of, study_folder
from pipeline_lib.models.similarity import EUCLIDEAN_FLOOR, ORDER_FLOOR
from pipeline_lib.running.publishing import dvc_md5
from pipeline_lib.settings.images import GivenFeatures, ImageFeatures

_UNKNOWN = "not known to Polyview: ask who made it, before you pass this model on"

PAPERS = {
    "calixto2017": "Calixto, Liu, Campbell 2017. Multilingual Multi-modal Embeddings for Natural "
    "Language Processing",
    "kadar2019": "Kádár, Chrupała, Alishahi, Elliott 2019. Bootstrapping Disjoint Datasets for "
    "Multilingual Multimodal Representation Learning",
    "kiros2014": "Kiros, Salakhutdinov, Zemel 2014. Unifying Visual-Semantic Embeddings with "
    "Multimodal Neural Language Models",
    "gella2017": "Gella, Sennrich, Keller, Lapata 2017. Image Pivoting for Learning Multilingual "
    "Multimodal Representations",
    "kim2020": "Kim, Saito, Saenko, Sclaroff, Plummer 2020. MULE: Multimodal Universal Language "
    "Embedding",
    "mohammadshahi2019": "Mohammadshahi, Lebret, Aberer 2019. Aligning Multilingual Word "
    "Embeddings for Cross-Modal Retrieval Task",
}

_ROWS = {"image_to_text": "photo to text", "text_to_image": "text to photo"}

_USE = {
    "sentence-transformers": """The installed package Polyview holds the module (`trust_remote_code`
lets sentence-transformers import it; this folder holds no code):

```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("{folder}", trust_remote_code=True)
model.encode(["{example}"], prompt_name="{language}")  # without prompt_name it is detected
```
""",
    "onnx": """`onnx.json` names the graph of each language. The tokens of a sentence are made as
`preprocessing.json` says: Unicode NFC; where it asks for them lower case (İ becomes i, and in
Turkish and Azerbaijani I becomes ı), with NFC once more, and Moses' punctuation; its tokenizer.
Moses' punctuation is sacremoses' `MosesPunctNormalizer(language).normalize(text + "\\n").strip()`,
whose rules need the line feed: with `perl_parity=True` for `normalize: true`, without for
`unicode`. The tokenizer `moses` is sacremoses' `MosesTokenizer(language).tokenize(text)`. `mecab`
is `fugashi.GenericTagger(f"{{ipadic.MECAB_ARGS}} -Owakati").parse(text).split()`. `jieba` is
`jieba.Tokenizer().cut(text)` without its blank tokens. `whitespace` splits at blanks. `unicode`
splits at blanks and at Unicode's word boundaries (Annex 29: `\\b` of the package regex with `WORD`
and `VERSION1`), and drops format characters around words.
Ids are made of the tokens by the table of `vocabulary.json` that names the language, and by the
numbers in `token_ids` of `onnx.json`:

1. The first `max_tokens` tokens are kept.
2. `words[i]` has the id `first + i` ({first} + i), `pieces[i]` the id `first + len(words) + i`.
3. {oov}
4. If no id is left, `unknown` ({unknown}) stands for the sentence.
5. The ids `before` ({before}) and `after` ({after}) are put around them.

`token_ids` is `int64 [sentences, longest]`, filled up with `padding` ({padding}) at the end.
`lengths`, `int64 [sentences]`, counts the ids of each, those of `before` and `after` too. There
must be one sentence at least, of one id at least: of less, the runtime ends the process.

{photos}

```python
import onnxruntime

session = onnxruntime.InferenceSession("{folder}/image.onnx")
vectors = session.run(None, {{"{photo_input}": {photo_input}}})[0]
```
""",
}

_CROPS = """`crops` are `uint8 [photos, {crops}, {side}, {side}, 3]`. A photo is decoded to RGB of
8 bits, turned upright as its EXIF says, and laid over white where it is transparent; of several
frames it is the first. {cut} Photos are resized by Pillow's `BILINEAR`."""

_FEATURES = """`features` are `float32 [photos, {dim}]`: those of the network whose features the
model has learnt from, made as they were made. Polyview does not know which network it was."""

_UNKNOWN_WORDS = {
    "unk": "Words that the training captions did not have are unknown.",
    "drop": "Words that the training captions did not have are left out.",
    "pieces": "Words that the training captions did not have are guessed from their pieces.",
}
"""By ``oov`` of the vocabulary."""

_SIMILARITIES = {
    "cosine": "`a·b`",
    "euclidean": f"`-√(2 - 2 a·b + {EUCLIDEAN_FLOOR:g})`, minus their distance",
    "order": f"`-√(|max(0, b - a)|² + {ORDER_FLOOR:g})`: 0 where no number of b exceeds a's",
    "squared_order": "`-|max(0, b - a)|²`: 0 where no number of b exceeds a's",
}
"""Of a photo's vector a and a sentence's b."""


def write_card(model: Path, form: str, folder: Path, name: str) -> None:
    """Write README.md.

    Args:
        model: Folder of a trained model, data/models/RECIPE/seed-N of its study if there is one.
        form: ``sentence-transformers`` or ``onnx``.
        folder: Where it is written.
        name: What the folder will be called.
    """
    embedder = Embedder.load(model)
    recipe = model / "recipe.json"
    learnt = read_report(recipe) if recipe.is_file() else {}
    extractor, languages = embedder.preprocessing.extractor, embedder.languages
    vocabulary, rule = embedder.model.vocabulary, id_rule(embedder.model.vocabulary)
    photo_input, photos = _image_input(extractor, embedder.model.feature_dim)
    use = _USE[form].format(
        folder=name, language=languages[0], example="…", photo_input=photo_input, photos=photos,
        oov=OOV[vocabulary.oov].format(**rule), **rule,
    )  # fmt: skip
    architecture = embedder.model.architecture
    pairs, name_of_recipe = learnt.get("pairs", "?"), recipe_of(model)
    sources = sources_of(study_folder(model), name_of_recipe, pairs)
    parts = [
        # Quoted, as JSON does: to YAML 1.1, which hubs read, a bare no is false.
        f"---\nlibrary_name: {form}\nlanguage: {json.dumps(languages)}\n"
        "tags: [image-text-retrieval, multilingual, polyview]\n---",
        f"# {name_of_recipe}, {model.resolve().name}",
        f"Sentences and photos in one space of {architecture.embed_dim} numbers, by Polyview: "
        f"text encoder `{architecture.text_encoder}`, image head `{architecture.image_head}`, "
        f"backbone `{extractor.backbone}`, similarity `{architecture.similarity}`. "
        "Vectors have length 1. Of a photo's vector a and a sentence's b the similarity is "
        f"{_SIMILARITIES[architecture.similarity]}. Higher is closer.",
        f"## Use\n\n{use}",
        f"## Languages\n\n{', '.join(languages)}. A language that is not here has no vector.",
        f"## Data\n\n{_data(sources, pairs, learnt.get('dataset', extractor.dataset))}",
        f"## Metrics\n\n{_metrics(model)}{_doubts(model)}",
        f"## Licences\n\n{_licences(sources, readers_of(study_folder(model)))}"
        f"\n- Backbone: {_of_backbone(extractor)}.\n- Polyview: Apache-2.0.",
        f"## Limits\n\n{_UNKNOWN_WORDS[embedder.model.vocabulary.oov]} The model has "
        "seen photos and captions of its data only: what they lack, or show with a bias, it does "
        "too. Scores compare photos for one query; they are no probabilities.",
        f"## Cite\n\n{PAPERS.get(learnt.get('paper'), 'The recipe is of no paper')}.\n\nPolyview: "
        "one reproducible pipeline for multilingual image-text embeddings (CITATION.cff).",
    ]
    (folder / "README.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _image_input(extractor: ImageFeatures, dim: int) -> tuple[str, str]:
    """Return what the graph of images takes, and how that is made."""
    if isinstance(extractor, GivenFeatures):
        return "features", _FEATURES.format(dim=dim)
    transform = TRANSFORMS[extractor.transform]
    return "crops", _CROPS.format(
        crops=transform.crops,
        side=transform.side(extractor.resize, extractor.crop),
        cut=transform.rule.format(resize=extractor.resize, crop=extractor.crop),
    )


def _data(sources: Sequence[str], pairs: str, dataset: str) -> str:
    """Say what was learnt (see :func:`sources_of`), and on which data set the recipe is tested."""
    learnt = ", ".join(f"`{source}`" for source in sources)
    where = f": {learnt}" if learnt else ", of a study that does not lie here as it was then"
    return f"Learnt from the pair set `{pairs}`{where}. The recipe is tested on `{dataset}`."


def _licences(sources: Sequence[str], readers: Mapping[str, str]) -> str:
    """Say what is known of each source: of a published data set under any name, by its reader."""
    if not sources:
        return f"- Data: {_UNKNOWN}."
    known = {
        source: DATA_LICENCES.get(source)
        or READER_LICENCES.get(readers.get(source, ""))
        or _UNKNOWN
        for source in sources
    }
    return "\n".join(f"- Data `{source}`: {text}." for source, text in known.items())


def _of_backbone(extractor: ImageFeatures) -> str:
    if isinstance(extractor, GivenFeatures) or Path(extractor.weights).suffix:
        return _UNKNOWN  # a file, whatever network it is of
    starts = BACKBONE_LICENCES.items()
    known = (text for start, text in starts if extractor.backbone.startswith(start))
    return next(known, _UNKNOWN)


def _metrics(model: Path) -> str:
    """Return the model's recalls with their intervals as a table, from its study's metrics."""
    path = _reports(model) / "scores/retrieval.json"
    if not path.is_file():
        return "None were found: the model lies outside a study that evaluated it."
    report = read_report(path)
    seed = report.get("per_seed", {}).get(str(seed_of(model)), {})
    if not seed:
        return "None were found: its study did not evaluate it."
    if not _is_the_one_evaluated(model):
        return "None were found: its study evaluated another model of this name."
    lines = ["| language | from | queries | candidates | R@1 | R@5 | R@10 |"]
    lines += ["|---|---|---:|---:|---:|---:|---:|"]
    for language, found in seed.items():
        for row, label in _ROWS.items():
            recalls = " | ".join(_recall(found[row], cut) for cut in ("r1", "r5", "r10"))
            counts = f"{found[row]['n_queries']} | {found[row]['n_candidates']}"
            lines.append(f"| {language} | {label} | {counts} | {recalls} |")
    note = f"Split `{report['split']}`, in percent, with the bootstrap interval of each."
    return "\n".join([note, "", *lines])


def _is_the_one_evaluated(model: Path) -> bool:
    """Return whether the models of a recipe are those that the lock's evaluation read.

    Metrics are in git and models are not: of another commit, or after a training alone, the two do
    not belong together. Without such a record nothing is known against them.
    """
    lock, recipe = study_folder(model) / "dvc.lock", recipe_of(model)
    try:
        stages = YAML(typ="safe").load(lock)["stages"] if lock.is_file() else {}
        read = stages.get(f"evaluate@{recipe}", {}).get("deps", [])
        recorded = [each["md5"] for each in read if each["path"] == f"data/models/{recipe}"]
    except (YAMLError, TypeError, KeyError, AttributeError) as error:
        raise ContractError(
            f"{lock}: expected DVC's record of the model's evaluation, found a file that is cut "
            "off, or has a merge's conflicts. Mend it: git checkout dvc.lock has the committed one"
        ) from error
    return not recorded or recorded == [dvc_md5(model.resolve().parent)]


def _doubts(model: Path) -> str:
    """Return what was doubtful when the model had been trained (training.doubts), or nothing."""
    path, seed = _reports(model) / "model.json", str(seed_of(model))
    found = read_report(path).get("doubts", {}) if path.is_file() else {}
    return "".join(f"\n\n**Doubtful**: {sentence}." for sentence in found.get(seed, ()))


def _reports(model: Path) -> Path:
    return study_folder(model) / f"metrics/reports/recipes/{recipe_of(model)}"


def _recall(scores: dict, cut: str) -> str:
    low, high = scores[f"{cut}_interval"]
    return f"{scores[cut]:.1f} ({low:.1f} to {high:.1f})"
