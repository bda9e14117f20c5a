"""params.yaml: models that are queried in a language they do not read, through a translator."""

from pipeline_lib.settings.strict import Name, Strict


class TranslatedQueries(Strict):
    """Captions translated from a language that a model does not read query it.

    In table 4b of Kim et al. 2020 the model reads English alone.

    Attributes:
        recipe: Recipe whose models are queried.
        features: Its images' features.
        translation: Entry of ``translations`` of the recipe's data set: its machine captions query.
    """

    recipe: Name
    features: Name
    translation: Name
