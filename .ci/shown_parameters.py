"""What documents show of params.yaml: ``python .ci/shown_parameters.py`` adds it to world's."""

import re
from pathlib import Path

from dvc.utils.serialize import modify_yaml
from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]


def add_shown_parameters(path):
    """Add the entries of every section that a document shows to a params.yaml, as a reader does."""
    with modify_yaml(path) as content:
        for document in DOCUMENTS:
            text = document.read_text(encoding="utf-8")
            for block in re.findall(r"^```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
                for section, entries in YAML().load(block).items():
                    content[section].update(entries)


if __name__ == "__main__":
    add_shown_parameters(ROOT / "params.yaml")
