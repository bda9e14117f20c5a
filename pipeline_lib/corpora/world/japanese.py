"""Japanese sentences: particles, counters, verbs in the progressive."""

from functools import partial

from pipeline_lib.corpora.world.messages import form, predicate
from pipeline_lib.corpora.world.patterns import of
from pipeline_lib.corpora.world.scenes import Entity, Scene
from pipeline_lib.corpora.world.wording import Choose, Phrase, Word, tagged_first

NUMERALS = {1: "一", 2: "二", 3: "三", 4: "四"}

# Counter, noun.
NOUNS = {
    "man": ("人 男性", "人 男"),
    "woman": ("人 女性", "人 婦人"),
    "boy": ("人 男の子", "人 少年"),
    "girl": ("人 女の子", "人 少女"),
    "dog": ("匹 犬",),
    "cat": ("匹 猫",),
    "rabbit": ("匹 兎", "羽 ウサギ"),
    "horse": ("頭 馬",),
    "cow": ("頭 牛",),
    "sheep": ("匹 羊",),
    "pig": ("匹 豚",),
    "elephant": ("頭 象",),
    "bird": ("羽 鳥",),
    "duck": ("羽 アヒル",),
    "ball": ("個 ボール",),
    "car": ("台 車", "台 自動車"),
    "bus": ("台 バス",),
    "house": ("軒 家",),
    "boat": ("隻 ボート", "隻 船"),
    "bicycle": ("台 自転車",),
    "umbrella": ("本 傘",),
    "table": ("つ テーブル", "つ 机"),
    "chair": ("脚 椅子",),
    "bench": ("つ ベンチ",),
    "tent": ("つ テント",),
    "balloon": ("個 風船",),
    "box": ("個 箱",),
    "hat": ("つ 帽子",),
    "guitar": ("本 ギター",),
    "tree": ("本 木",),
    "flower": ("本 花",),
}
GARMENTS = {
    "shirt": ("シャツ",),
    "coat": ("コート", "上着"),
    "dress": ("ドレス", "ワンピース"),
}
# The word and what joins it to the noun.
ADJECTIVES = {
    "red": ("赤い",),
    "blue": ("青い",),
    "green": ("緑 の",),
    "yellow": ("黄色い",),
    "purple": ("紫 の",),
    "black": ("黒い",),
    "white": ("白い",),
    "brown": ("茶色い", "茶色 の"),
    "grey": ("灰色 の",),
    "big": ("大きな", "大きい"),
    "small": ("小さな", "小さい"),
}
# What precedes the verb, the verb, the auxiliary.
VERBS = {
    "run": ("", "走っ", "て"),
    "walk": ("", "歩い", "て"),
    "sit": ("", "座っ", "て"),
    "stand": ("", "立っ", "て"),
    "jump": ("", "跳ん", "で"),
    "sleep": ("", "眠っ", "て"),
    "eat": ("何かを", "食べ", "て"),
    "read": ("本を", "読ん", "で"),
    "dance": ("", "踊っ", "て"),
    "wave": ("手を", "振っ", "て"),
    "fly": ("", "飛ん", "で"),
    "hold": ("", "持っ", "て"),
}
_STATES = ("sit", "stand")
RELATIONS = {
    "next_to": ("隣", "横"),
    "in_front_of": ("前",),
    "behind": ("後ろ",),
    "under": ("下",),
    "on": ("上",),
}
# Noun, what makes it a place.
PLACES = {
    "beach": ("砂浜", "海岸"),
    "forest": ("森", "林"),
    "street": ("道路", "道"),
    "meadow": ("草原", "草地"),
    "kitchen": ("台所", "キッチン"),
    "snow": ("雪 の中",),
    "desert": ("砂漠",),
    "mountains": ("山",),
    "lake": ("湖 のほとり",),
    "bedroom": ("寝室",),
}
# Mere existence somewhere unsaid is not a description: then the noun phrase stands alone.
FORMS = {
    "presence": "PLACE SUBJECT RELATION EXIST: [PLACE] [RELATION] SUBJECT が EXIST"
    " | SUBJECT が [PLACE] [RELATION] EXIST | PLACE [RELATION] EXIST SUBJECT"
    " | RELATION EXIST SUBJECT | SUBJECT",
    "action": "PLACE SUBJECT RELATION OBJECT VERB:"
    " [PLACE] [RELATION] SUBJECT が [OBJECT を] VERB いる"
    " | SUBJECT が [PLACE] [RELATION] [OBJECT を] VERB いる"
    " | [PLACE] [RELATION] [OBJECT を] VERB いる SUBJECT",
    "together": "SUBJECT OTHER PLACE: [PLACE] SUBJECT と OTHER が 見える"
    " | SUBJECT と OTHER が [PLACE] 見える | PLACE 見える SUBJECT と OTHER | SUBJECT と OTHER",
    "events": "SUBJECT VERB OTHER OTHER_VERB PLACE:"
    " [PLACE] SUBJECT が VERB いて、 OTHER が OTHER_VERB いる",
}


def _noun_phrase(entity: Entity, choose: Choose) -> Phrase:
    counter, noun = choose(NOUNS[entity.noun]).split()
    counted = [f"{NUMERALS[entity.count]}{counter}の"]
    size = _adjective(entity.size, choose)
    colour = _adjective(entity.colour, choose)
    if entity.garment is None:
        return [*counted, *size, *colour, Word(noun, entity.noun)]
    clothes = Word(choose(GARMENTS[entity.garment]), entity.garment)
    return [*colour, clothes, "を着た", *counted, *size, Word(noun, entity.noun)]


def _adjective(concept: str | None, choose: Choose) -> Phrase:
    return tagged_first(choose(ADJECTIVES[concept]), concept) if concept else []


def _relation(message: Scene, choose: Choose) -> Phrase:
    if message.relation in (None, "hold"):
        return []
    position = Word(choose(RELATIONS[message.relation]), message.relation)
    return [*_noun_phrase(message.entities[1], choose), "の", position, _particle(message)]


def _object(message: Scene, choose: Choose) -> Phrase:
    return _noun_phrase(message.entities[1], choose) if message.relation == "hold" else []


def _place(message: Scene, choose: Choose) -> Phrase:
    if message.place is None:
        return []
    sets_the_scene = form(message) == "events" or message.relation not in (None, "hold")
    particle = "で、" if sets_the_scene else _particle(message)
    return [*tagged_first(choose(PLACES[message.place]), message.place), particle]


def _particle(message: Scene) -> str:
    """Return what marks where something is: で for activities, に for states and existence."""
    active = form(message) == "action" and predicate(message, 0) not in _STATES
    return "で" if active else "に"


def _verb(index: int, message: Scene, choose: Choose) -> Phrase:
    action = predicate(message, index)
    before, stem, auxiliary = VERBS[action]
    return [before, Word(stem, action), auxiliary]


PARTS = {
    "SUBJECT": of(0, _noun_phrase),
    "OTHER": of(1, _noun_phrase),
    "RELATION": _relation,
    "OBJECT": _object,
    "PLACE": _place,
    "EXIST": of(0, lambda entity, choose: ["いる" if entity.acts else "ある"]),
    "VERB": partial(_verb, 0),
    "OTHER_VERB": partial(_verb, 1),
}
