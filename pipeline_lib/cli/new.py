"""``polyview new``: a complete study of one's own photos and captions."""

import re
import shutil
from contextlib import chdir
from pathlib import Path

import click

from pipeline_lib.checks.study import check_study
from pipeline_lib.cli.example import example
from pipeline_lib.cli.layouts import DOORS, Door, Found, Source
from pipeline_lib.cli.search import check_is_no_pipe
from pipeline_lib.cli.study_params import study_params
from pipeline_lib.contract.problems import said_before, warn
from pipeline_lib.contract.published import COLUMNS, PUBLISHED
from pipeline_lib.export.licences import DATA_LICENCES
from pipeline_lib.running.publishing import flush, own_folder
from pipeline_lib.settings.loading import load_settings
from pipeline_lib.settings.messages import lines_of
from pipeline_lib.settings.strict import NONE, RANDOM, SettingsError
from pipeline_lib.settings.study import PARAMS

CONFIG = """[core]
    analytics = false
    check_update = false
[cache]
    dir = ../../../.dvc/cache
"""
"""Of DVC: a study is a project of its own, and shares the cache."""

DVCIGNORE = """__pycache__/
# What a killed stage was writing, until the next publication of the same path removes it.
.*.partial-*
"""


@click.command(
    short_help="Make a study of your photos and captions.",
    epilog=example("polyview new mine --captions captions.tsv --images photos/", "made"),
)
@click.argument("name")
@click.option(
    "--captions", required=True, type=click.Path(exists=True, path_type=Path),
    help="Table of captions, or with another --from than table the folder of that corpus.",
)  # fmt: skip
@click.option(
    "--images", type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of the photos.",
)  # fmt: skip
@click.option(
    "--features", type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Instead of photos: HDF5 of their features by any network, as docs/data.md describes.",
)  # fmt: skip
@click.option(
    "--from", "door", type=click.Choice([*DOORS]), default="table", show_default=True,
    help="Your own table, or a published corpus in the layout that docs/studies.md describes.",
)  # fmt: skip
@click.option(
    "--language", "languages", multiple=True, metavar="CODE",
    help="Use only this language (may be repeated). Default: all languages of the captions.",
)  # fmt: skip
def new(
    name: str,
    captions: Path,
    images: Path | None,
    features: Path | None,
    door: str,
    languages: tuple[str, ...],
) -> None:
    """Create the study studies/NAME from your photos and captions, checked, ready for dvc repro.

    Name the photos (--images), or features of them that you have (--features).

    A table is UTF-8 with a header and the columns image (a path below the folder of photos),
    language and text, separated by tabs (or commas, as .csv); it may have split, annotation,
    position and translation_of.
    """
    if (images is None) == (features is None):
        found = "neither" if images is None else "both"
        raise SettingsError(f"expected --images or --features, found {found}")
    check_is_no_pipe(captions)
    given = features is not None
    source = Source(name, _absolute(captions), (features or images).resolve(), given, languages)
    _check_place(Path.cwd(), name)
    _check_name(name, door)
    load_settings(Path.cwd() / PARAMS)  # whose evaluations and tokenizers the study takes
    found = _make(Path.cwd(), source, DOORS[door])
    click.echo(f"{found.summary}\n\nmade studies/{name}. Next:\n")
    click.echo(f"  cd studies/{name}\n  uv run dvc repro\n\nthen open data/report/index.html")


def _absolute(captions: Path) -> Path:
    """Return where captions are; a link to a table keeps its name, which says its form."""
    if captions.is_dir():
        return captions.resolve()
    return captions.parent.resolve() / captions.name


def _make(root: Path, source: Source, door: Door) -> Found:
    """Write the study whole, or nothing."""
    folder = root / "studies" / source.name
    with own_folder(folder) as partial:
        found = door(source, partial / "data/raw")
        _write_study(root, partial, study_params(root, source, found))
        _check_study(partial, Path("studies", source.name))
        flush(partial)
        try:
            partial.rename(folder)
        except OSError:
            _check_place(root, source.name)  # another run may have made it meanwhile
            raise
    return found


def _check_study(folder: Path, place: Path) -> None:
    """Raise what would stop the study, as its first stage would; warn of what may be meant.

    Args:
        folder: The study.
        place: Where it will be.
    """
    settings = load_settings(folder / PARAMS)
    with chdir(folder), said_before():
        found = check_study(settings)
    for sentence in lines_of(folder / PARAMS, found.warnings):
        warn(f"{place / PARAMS}: {sentence}")
    if wrong := [*found.problems, *found.missing]:
        raise SettingsError("\n".join(["the study cannot be made:", *wrong]))


def _check_place(root: Path, name: str) -> None:
    if not all((root / file).is_file() for file in ("dvc.yaml", "papers.yaml", "params.yaml")):
        raise SettingsError(
            f"{root.name}: expected the root of Polyview's checkout, which holds papers.yaml. "
            "Run the command there."
        )
    if not re.fullmatch("[A-Za-z][A-Za-z0-9_]*", name) or name in (NONE, RANDOM):
        raise SettingsError(
            f"NAME: expected a letter, then letters, digits and _, and neither {NONE} nor "
            f"{RANDOM}; found {name!r}"
        )
    studies = root / "studies"
    if studies.resolve() != root.resolve() / "studies":
        raise SettingsError(
            f"studies: expected a folder of the checkout, found a link to {studies.resolve()}: "
            "the links of a study would lead astray. Move the whole checkout there"
        )
    if (studies / name).exists():
        raise SettingsError(f"studies/{name} is there already: take another name, or remove it")


def _check_name(name: str, door: str) -> None:
    """Refuse the name of a published data set: a model card would claim its licence."""
    if name in DATA_LICENCES and not name.startswith(door):
        raise SettingsError(
            f"NAME: expected a name of your own, found {name}, a data set whose licence model "
            "cards would give for yours: take another name"
        )


def _write_study(root: Path, folder: Path, params: str) -> None:
    (folder / "params.yaml").write_text(params, encoding="utf-8")
    shutil.copyfile(root / "dvc.yaml", folder / "dvc.yaml")
    (folder / "checkout").mkdir()  # no link to the root itself: DVC reads nothing below a .dvc
    for name in ("papers.yaml", "pipeline_lib", "stages"):
        (folder / "checkout" / name).symlink_to(f"../../../{name}")
    no_figures = ",".join(COLUMNS)  # nobody has printed any of new data
    (folder / PUBLISHED).write_text(f"{no_figures}\n", encoding="utf-8")
    (folder / ".dvcignore").write_text(DVCIGNORE, encoding="utf-8")
    (folder / ".dvc").mkdir()
    (folder / ".dvc/config").write_text(CONFIG, encoding="utf-8")
    shutil.copytree(root / ".dvc/plots", folder / ".dvc/plots")
    (folder / ".dvc/.gitignore").write_text("/config.local\n/tmp\n/cache\n", encoding="utf-8")
