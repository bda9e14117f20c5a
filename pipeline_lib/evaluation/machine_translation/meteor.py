"""METEOR by its authors' program, which needs Java; no other program computes the same number."""

import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from pipeline_lib.contract.problems import raise_problems

LANGUAGES = {"en": "en", "de": "de", "fr": "fr", "cs": "cz", "es": "es"}
"""The program's name of each language that it has rules for."""


def meteor(
    hypotheses: Sequence[str], references: Sequence[str], language: str
) -> dict[str, object]:
    """Score translations with METEOR 1.5 (Denkowski and Lavie 2014), the authors' program.

    Paraphrases are matched where the program has a table of them for the language; the signature
    says what was matched.

    Args:
        hypotheses: Translations ``[segments]``.
        references: One reference each ``[segments]``.
        language: Their language.

    Returns:
        ``meteor`` in per cent and ``meteor_signature``.

    Raises:
        ContractError: As :func:`check_meteor`.
        RuntimeError: The program fails; with what it says.
    """
    check_meteor(language)
    jar, code = _meteor_jar(), LANGUAGES[language]
    paraphrases = (jar.parent / "data" / f"paraphrase-{code}.gz").is_file()
    modules = ["exact", "stem", *["synonym"] * (code == "en"), *["paraphrase"] * paraphrases]
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, name) for name in ("hypotheses", "references")]
        for file, texts in zip(files, (hypotheses, references), strict=True):
            lines = (" ".join(text.split()) + "\n" for text in texts)
            file.write_text("".join(lines), encoding="utf-8")
        score = _run_meteor(jar, files, ["-l", code, "-norm", "-m", " ".join(modules)])
    return {
        "meteor": 100 * score,
        "meteor_signature": f"meteor-1.5|l:{code}|norm:yes|m:{'+'.join(modules)}",
    }


def check_meteor(language: str) -> None:
    """Raise if translations into a language cannot be scored here.

    Raises:
        ContractError: Lists what is absent: Java, the program, the language's rules.
    """
    raise_problems("METEOR", _absent(language))


def _absent(language: str) -> Iterator[str]:
    if shutil.which("java") is None:
        yield "expected the command java, found none. Install a Java runtime or set meteor: false"
    if _meteor_jar() is None:
        yield (
            "expected the package pycocoevalcap, which brings the program, found none. Run "
            "`uv sync --group meteor` or set meteor: false"
        )
    if language not in LANGUAGES:
        yield f"expected a language among {', '.join(LANGUAGES)}, found {language}"


def _meteor_jar() -> Path | None:
    package = importlib.util.find_spec("pycocoevalcap")
    if package is None or not package.submodule_search_locations:
        return None
    jar = Path(package.submodule_search_locations[0], "meteor", "meteor-1.5.jar")
    return jar if jar.is_file() else None


def _run_meteor(jar: Path, files: list[Path], options: list[str]) -> float:
    ran = subprocess.run(
        ["java", "-Xmx2G", "-Dfile.encoding=UTF-8", "-jar", jar, *files, *options],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "LC_ALL": "C"},
        check=False,
    )
    final = [line.split()[-1] for line in ran.stdout.splitlines() if line.startswith("Final score")]
    if ran.returncode or not final:
        raise RuntimeError(f"METEOR failed ({ran.returncode}): {ran.stderr or ran.stdout}")
    return float(final[0])
