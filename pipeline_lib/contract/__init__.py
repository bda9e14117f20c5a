"""The data contract: the form of every artefact that passes from one stage to another.

Tables are parquet, vectors are HDF5. Each ``write_*`` checks before it publishes and each
``read_*`` checks what it finds, so a broken artefact stops at the stage that made it. A check
collects every problem and raises one :class:`ContractError`.

Identity travels with the data: every row carries its ids, and joins are by id, never by position.
An ``image_id`` names the photo itself, not its place in one data set (``flickr:1000268201``,
``coco:391895``, ``world:000017``), so that two data sets that share photos can be told apart from
two that do not.
"""
