"""How the ids of a vocabulary are made, for whoever makes them without this package."""

from pipeline_lib.text.pieces import LONGEST, MARK
from pipeline_lib.text.vocabulary import PAD, SPECIALS, UNK, Vocabulary

OOV = {
    "unk": "A token that is not among the words has the id `unknown` ({unknown}).",
    "drop": "A token that is not among the words is left out.",
    "pieces": "A token that is not among the words is put between `<` and `>`. From left to right, "
    f"the longest run of at most {LONGEST} characters that stands among the pieces, there behind "
    f"the mark U+{ord(MARK):04X}, is taken; a character at which none begins is passed over.",
}
"""What becomes of an unknown token, by ``oov`` of the vocabulary."""


def id_rule(vocabulary: Vocabulary) -> dict[str, int | list[int]]:
    """Return the ids of padding, an unknown token and the first word, and those of the markers."""
    sentence = vocabulary.encode([], vocabulary.languages[0])  # of no word: UNK and the markers
    place = sentence.index(UNK)
    return {
        "padding": PAD,
        "unknown": UNK,
        "first": len(SPECIALS),
        "before": sentence[:place],
        "after": sentence[place + 1 :],
    }
