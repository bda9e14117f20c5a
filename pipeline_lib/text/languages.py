"""What is known of languages by their codes, of two letters or three (ISO 639)."""

WITHOUT_SPACES = {"bo", "dz", "ja", "km", "lo", "my", "th", "zh"}
"""Languages without spaces between words."""

_TWO_LETTERS = {
    "aze": "az", "bod": "bo", "cmn": "zh", "dzo": "dz", "jpn": "ja", "khm": "km", "lao": "lo",
    "mya": "my", "tha": "th", "tur": "tr", "yue": "zh", "zho": "zh",
}  # fmt: skip
"""Codes of three letters whose language is treated as no other."""


def two_letters(language: str) -> str:
    """Return the code by which a language is known here; its own where it is treated as most."""
    return _TWO_LETTERS.get(language, language)
