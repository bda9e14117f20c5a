"""Chinese sentences: measure words, place words before the verb."""

from pipeline_lib.corpora.world.messages import predicate
from pipeline_lib.corpora.world.scenes import Entity, Scene
from pipeline_lib.corpora.world.wording import Choose, Phrase, Word

NUMERALS = {1: "一", 2: "两", 3: "三", 4: "四"}

# Measure word, noun.
NOUNS = {
    "man": ("个 男人", "位 男士"),
    "woman": ("个 女人", "位 女士"),
    "boy": ("个 男孩",),
    "girl": ("个 女孩",),
    "dog": ("只 狗",),
    "cat": ("只 猫",),
    "rabbit": ("只 兔子",),
    "horse": ("匹 马",),
    "cow": ("头 牛",),
    "sheep": ("只 羊", "只 绵羊"),
    "pig": ("头 猪",),
    "elephant": ("头 大象",),
    "bird": ("只 鸟",),
    "duck": ("只 鸭子",),
    "ball": ("个 球",),
    "car": ("辆 汽车", "辆 轿车"),
    "bus": ("辆 公交车", "辆 巴士"),
    "house": ("座 房子", "栋 房屋"),
    "boat": ("艘 船",),
    "bicycle": ("辆 自行车", "辆 单车"),
    "umbrella": ("把 雨伞",),
    "table": ("张 桌子",),
    "chair": ("把 椅子",),
    "bench": ("条 长椅", "条 长凳"),
    "tent": ("顶 帐篷",),
    "balloon": ("个 气球",),
    "box": ("个 箱子", "个 盒子"),
    "hat": ("顶 帽子",),
    "guitar": ("把 吉他",),
    "tree": ("棵 树",),
    "flower": ("朵 花",),
}
GARMENTS = {
    "shirt": ("衬衫", "衬衣"),
    "coat": ("外套", "大衣"),
    "dress": ("裙子", "连衣裙"),
}
COLOURS = {
    "red": "红色",
    "blue": "蓝色",
    "green": "绿色",
    "yellow": "黄色",
    "purple": "紫色",
    "black": "黑色",
    "white": "白色",
    "brown": "棕色",
    "grey": "灰色",
}
SIZES = {"big": "很大", "small": "很小"}
ACTIONS = {
    "run": ("奔跑", "跑步"),
    "walk": ("散步", "行走"),
    "jump": ("跳跃",),
    "sleep": ("睡觉",),
    "eat": ("吃 东西",),
    "read": ("看书", "阅读"),
    "dance": ("跳舞",),
    "wave": ("挥手",),
    "fly": ("飞翔",),
}
STATES = {"sit": "坐", "stand": "站"}
RELATIONS = {
    "next_to": ("旁边",),
    "in_front_of": ("前面",),
    "behind": ("后面",),
    "under": ("下面",),
    "on": ("上面",),
}
# Noun, place word; segmenters take some of them as one word.
PLACES = {
    "beach": ("海滩 上", "沙滩 上"),
    "forest": ("森林 里", "树林 里"),
    "street": ("街道 上", "公路 上"),
    "meadow": ("草地 上",),
    "kitchen": ("厨房 里",),
    "snow": ("雪地 里",),
    "desert": ("沙漠 里",),
    "mountains": ("山里",),
    "lake": ("湖边",),
    "bedroom": ("卧室 里",),
}


def clause(message: Scene, choose: Choose) -> Phrase:
    """Say what one entity is like, does, and how it stands to a thing."""
    place, phrase = _place(message, choose), _noun_phrase(message.entities[0], choose)
    if message.relation == "hold":
        held = [Word("拿", "hold"), "着", *_noun_phrase(message.entities[1], choose)]
        return choose([[*_setting(place), *phrase, *held], [*phrase, *_at(place), *held]])
    spot = _relation(message, choose)
    action = predicate(message)
    if action is None:
        return _presence(phrase, spot, place, choose)
    act = _act(action, choose, located=bool(spot or place))
    if spot:
        return [*_setting(place), *phrase, *_at(spot), *act]
    plain = [*phrase, *_at(place), *act]
    return choose([plain, [*_setting(place), *phrase, *_act(action, choose, located=False)]])


def together(message: Scene, choose: Choose) -> Phrase:
    """Say that two entities are there."""
    first, second = (_noun_phrase(entity, choose) for entity in message.entities)
    return _presence([*first, "和", *second], [], _place(message, choose), choose)


def events(message: Scene, choose: Choose) -> Phrase:
    """Say what two entities do."""
    first, second = (
        [*_noun_phrase(entity, choose), *_act(entity.action, choose, located=False)]
        for entity in message.entities
    )
    joint = choose(["，", "，而"])
    return [*_setting(_place(message, choose)), *first, joint, *second]


def _presence(phrase: Phrase, spot: Phrase, place: Phrase, choose: Choose) -> Phrase:
    if spot:
        return [
            *_setting(place),
            *choose([[*phrase, *_at(spot)], [*spot, "有", *phrase]]),
        ]
    if place:
        return choose([[*place, "有", *phrase], [*phrase, *_at(place)]])
    return ["图片里有", *phrase]


def _act(action: str, choose: Choose, *, located: bool) -> Phrase:
    """Return the verb; where no place stands before it, an activity takes its own 在."""
    if action in STATES:
        return [Word(STATES[action], action), "着"]
    verb, *object_ = choose(ACTIONS[action]).split()
    act = [Word(verb, action), *object_]
    return act if located else [choose(["在", "正在"]), *act]


def _setting(place: Phrase) -> Phrase:
    return ["在", *place, "，"] if place else []


def _at(spot: Phrase) -> Phrase:
    return ["在", *spot] if spot else []


def _relation(message: Scene, choose: Choose) -> Phrase:
    if message.relation is None:
        return []
    position = Word(choose(RELATIONS[message.relation]), message.relation)
    return [*_noun_phrase(message.entities[1], choose), position]


def _place(message: Scene, choose: Choose) -> Phrase:
    if message.place is None:
        return []
    noun, *position = choose(PLACES[message.place]).split()
    return [Word(noun, message.place), *position]


def _noun_phrase(entity: Entity, choose: Choose) -> Phrase:
    measure, noun = choose(NOUNS[entity.noun]).split()
    phrase: Phrase = [NUMERALS[entity.count] + measure]
    if entity.size:
        phrase += [Word(SIZES[entity.size], entity.size), "的"]
    if entity.garment:
        clothes = Word(choose(GARMENTS[entity.garment]), entity.garment)
        phrase += ["穿着", Word(COLOURS[entity.colour], entity.colour), clothes, "的"]
    elif entity.colour:
        # One 的 is enough: a colour after a size stands directly before the noun.
        phrase += [Word(COLOURS[entity.colour], entity.colour), *([] if entity.size else ["的"])]
    return [*phrase, Word(noun, entity.noun)]


GRAMMAR = {"clause": clause, "together": together, "events": events}
