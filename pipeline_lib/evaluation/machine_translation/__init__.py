"""Quality of machine translations: BLEU, TER, chrF and METEOR."""
