"""params.yaml: extractors of image features, and features that are given."""

from typing import Annotated, Literal

from pydantic import Discriminator, Tag

from pipeline_lib.settings.strict import Count, Name, Precision, Strict


class Extractor(Strict):
    """How the images of one data set become features.

    Attributes:
        dataset: Whose images.
        images: Folder of their files.
        backbone: Name of the network (images/backbones.py).
        weights: ``package``, a name of torchvision's (``IMAGENET1K_V1``), or the path of a state
            dict named after the first digits of its SHA-256.
        transform: How a photo is cut (images/transforms.py).
        resize: Pixels of the shorter side before crops; plays no part where a photo is squashed.
        crop: Pixels of a side of each crop.
        precision: Of the network's numbers; bf16 only where the hardware multiplies it.
        batch_size: Photos at a time.
        layers: ``last``, what the classifier reads; ``stages``, statistics of all stages besides.
    """

    dataset: Name
    images: str
    backbone: str
    weights: str
    transform: Literal["center", "ten_crop", "dense_ten_crop", "squash", "squash_mirror"]
    resize: Count
    crop: Count
    precision: Precision
    batch_size: Count
    layers: Literal["last", "stages"] = "last"

    @property
    def weights_are_named(self) -> bool:
        """Whether ``weights`` is a name, and no file."""
        return self.weights.isidentifier()


GIVEN = "given"
"""Backbone of features that were made elsewhere."""


class GivenFeatures(Strict):
    """Features of the images of one data set that another program made.

    Attributes:
        dataset: Whose images.
        images: HDF5 file of their features (images/given.py).
        backbone: ``given``.
    """

    dataset: Name
    images: str
    backbone: Literal["given"]


def _form(entry: object) -> str:
    backbone = entry.get("backbone") if isinstance(entry, dict) else getattr(entry, "backbone", "")
    return GIVEN if backbone == GIVEN else Extractor.__name__


ImageFeatures = Annotated[
    Annotated[Extractor, Tag(Extractor.__name__)] | Annotated[GivenFeatures, Tag(GIVEN)],
    Discriminator(_form),
]
