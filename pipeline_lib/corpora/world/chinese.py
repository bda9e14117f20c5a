"""Chinese sentences: measure words, place words before the verb."""

from pipeline_lib.corpora.world.messages import predicate
from pipeline_lib.corpora.world.patterns import of
from pipeline_lib.corpora.world.scenes import Entity, Scene
from pipeline_lib.corpora.world.wording import Choose, Phrase, Word, tagged_first

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
STATES = {"sit": "坐", "stand": "站", "hold": "拿"}
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
FORMS = {
    "presence": "PLACE SUBJECT RELATION: [在 PLACE ，] SUBJECT 在 RELATION"
    " | [在 PLACE ，] RELATION 有 SUBJECT | PLACE 有 SUBJECT | SUBJECT 在 PLACE | 图片里有 SUBJECT",
    "action": "PLACE SUBJECT RELATION OBJECT VERB DOING: [在 PLACE ，] SUBJECT 在 RELATION VERB"
    " | [在 PLACE ，] SUBJECT VERB OBJECT | SUBJECT [在 PLACE] VERB [OBJECT]"
    " | [在 PLACE ，] SUBJECT DOING",
    "together": "SUBJECT OTHER PLACE: PLACE 有 SUBJECT 和 OTHER | SUBJECT 和 OTHER 在 PLACE"
    " | 图片里有 SUBJECT 和 OTHER",
    "events": "SUBJECT DOING OTHER OTHER_DOING CONJUNCTION PLACE:"
    " [在 PLACE ，] SUBJECT DOING CONJUNCTION OTHER OTHER_DOING",
}


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


def _relation(message: Scene, choose: Choose) -> Phrase:
    if message.relation in (None, "hold"):
        return []
    position = Word(choose(RELATIONS[message.relation]), message.relation)
    return [*_noun_phrase(message.entities[1], choose), position]


def _object(message: Scene, choose: Choose) -> Phrase:
    return _noun_phrase(message.entities[1], choose) if message.relation == "hold" else []


def _place(message: Scene, choose: Choose) -> Phrase:
    return tagged_first(choose(PLACES[message.place]), message.place) if message.place else []


def _verb(message: Scene, choose: Choose) -> Phrase:
    """Return the verb; where no place stands before it, an activity takes its own 在."""
    located = message.place or message.relation
    return (_act if located else _doing)(predicate(message, 0), choose)


def _act(action: str, choose: Choose) -> Phrase:
    if action in STATES:
        return [Word(STATES[action], action), "着"]
    return tagged_first(choose(ACTIONS[action]), action)


def _doing(action: str, choose: Choose) -> Phrase:
    act = _act(action, choose)
    return act if action in STATES else [choose(("在", "正在")), *act]


PARTS = {
    "SUBJECT": of(0, _noun_phrase),
    "OTHER": of(1, _noun_phrase),
    "RELATION": _relation,
    "OBJECT": _object,
    "PLACE": _place,
    "VERB": _verb,
    # A relation always stands before the verb.
    "DOING": lambda message, choose: (
        [] if message.relation else _doing(predicate(message, 0), choose)
    ),
    "OTHER_DOING": lambda message, choose: _doing(predicate(message, 1), choose),
    "CONJUNCTION": lambda message, choose: [choose(("，", "，而"))],
}
