"""params.yaml: extractors of image features."""

from typing import Literal

from pipeline_lib.settings.strict import Count, Name, Precision, Strict


class Extractor(Strict):
    """How the images of one data set become features: see pipeline_lib/images."""

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
