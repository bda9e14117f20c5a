"""Subwords that two languages share: byte-pair encoding by sentencepiece."""

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from pipeline_lib.contract.problems import ContractError
from pipeline_lib.text.vocabulary import END, PAD, START, UNK


@dataclass(frozen=True)
class Subwords:
    """From sentences to ids and back; ids 0 to 3 are those of ``vocabulary.SPECIALS``.

    Attributes:
        model: What sentencepiece wrote; it depends on the training sentences and size only.
    """

    model: bytes

    @classmethod
    def train(cls, sentences: Iterable[str], size: int) -> "Subwords":
        """Learn ``size`` subwords, specials included, from training sentences of all languages.

        Text is taken as it is (the captions are in NFC), so that decoding gives back the sentence,
        but for runs of spaces and for characters that training sentences lack. SentencePiece skips
        sentences of more than 4,192 bytes.

        Raises:
            ContractError: The sentences cannot be cut into so many subwords.
        """
        import sentencepiece

        written = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(sentences),
                model_writer=written,
                model_type="bpe",
                vocab_size=size,
                character_coverage=1.0,
                normalization_rule_name="identity",
                pad_id=PAD,
                unk_id=UNK,
                bos_id=START,
                eos_id=END,
                num_threads=1,
                shuffle_input_sentence=False,
                minloglevel=2,
            )
        except RuntimeError as error:
            raise ContractError(
                f"subwords: expected training sentences that give {size} subwords, found: {error}. "
                "Change subwords of the translator in params.yaml, or add sentences."
            ) from error
        return cls(written.getvalue())

    def __len__(self) -> int:
        return self._processor.get_piece_size()

    def encode(self, sentences: Sequence[str]) -> list[list[int]]:
        """Return the ids of each sentence's subwords, without markers."""
        return self._processor.encode(list(sentences))

    def decode(self, ids: Sequence[Sequence[int]]) -> list[str]:
        """Return the sentences that ids spell; markers are left out."""
        return self._processor.decode([list(each) for each in ids])

    @cached_property
    def _processor(self):
        import sentencepiece

        return sentencepiece.SentencePieceProcessor(model_proto=self.model)
