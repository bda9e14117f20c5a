"""Japanese sentences: particles, counters, verbs in the progressive."""

from pipeline_lib.corpora.world.messages import predicate
from pipeline_lib.corpora.world.scenes import Entity, Scene
from pipeline_lib.corpora.world.wording import Choose, Phrase, Word

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
_EXISTENCE = ("いる", "ある", "見える")
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


def clause(message: Scene, choose: Choose) -> Phrase:
    """Say what one entity is like, does, and how it stands to a thing."""
    subject, action, place = message.entities[0], predicate(message), _place(message, choose)
    phrase, spot = _noun_phrase(subject, choose), _relation(message, choose)
    if action is None:
        verb: Phrase = ["いる"] if subject.acts else ["ある"]
        return _scene_of(phrase, _near(place, spot, "に"), verb, choose)
    before, stem, auxiliary = VERBS[action]
    verb = [before, Word(stem, action), f"{auxiliary}いる"]
    if action == "hold":
        verb = [*_noun_phrase(message.entities[1], choose), "を", *verb]
        spot = []
    return _scene_of(phrase, _near(place, spot, "に" if action in _STATES else "で"), verb, choose)


def together(message: Scene, choose: Choose) -> Phrase:
    """Say that two entities are there."""
    first, second = (_noun_phrase(entity, choose) for entity in message.entities)
    return _scene_of(
        [*first, "と", *second], _near(_place(message, choose), [], "に"), ["見える"], choose
    )


def events(message: Scene, choose: Choose) -> Phrase:
    """Say what two entities do."""
    first, second = (_event(entity, choose) for entity in message.entities)
    place = _place(message, choose)
    setting = [*place, "で、"] if place else []
    return [*setting, *first, "いて、", *second, "いる"]


def _scene_of(phrase: Phrase, where: Phrase, verb: Phrase, choose: Choose) -> Phrase:
    """Order a sentence: place first, subject first, or the subject last as a noun phrase."""
    # Mere existence somewhere unsaid is not a description: then the noun phrase stands alone.
    described = [*where, *verb, *phrase] if where or verb[0] not in _EXISTENCE else phrase
    return choose([[*where, *phrase, "が", *verb], [*phrase, "が", *where, *verb], described])


def _near(place: Phrase, spot: Phrase, particle: str) -> Phrase:
    if place and spot:
        return [*place, "で、", *spot, particle]
    return [*place, *spot, particle] if place or spot else []


def _event(entity: Entity, choose: Choose) -> Phrase:
    before, stem, auxiliary = VERBS[entity.action]
    return [*_noun_phrase(entity, choose), "が", before, Word(stem, entity.action), auxiliary]


def _relation(message: Scene, choose: Choose) -> Phrase:
    if message.relation in (None, "hold"):
        return []
    position = Word(choose(RELATIONS[message.relation]), message.relation)
    return [*_noun_phrase(message.entities[1], choose), "の", position]


def _place(message: Scene, choose: Choose) -> Phrase:
    return _word(choose(PLACES[message.place]), message.place) if message.place else []


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
    return _word(choose(ADJECTIVES[concept]), concept) if concept else []


def _word(text: str, concept: str) -> Phrase:
    word, *suffix = text.split()
    return [Word(word, concept), *suffix]


GRAMMAR = {"clause": clause, "together": together, "events": events}
