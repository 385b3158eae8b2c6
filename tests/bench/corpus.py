"""A made-up vault of any size: pages of about 3 kB with frontmatter, links and timelines, a third of them Chinese.

Equal seed and size give equal bytes, so that figures of different days and machines are about the same text.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

BODY_BYTES_MIN = 2_600
"""A page grows paragraph by paragraph until it has this many bytes: about 3 kB with its frontmatter and timeline."""

ENGLISH_NOUNS = (
    "ledger harbor turbine orchard protocol kiln lantern archive compass reservoir gearbox pavilion sensor quarry "
    "loom satellite granary viaduct beacon foundry telescope aquifer tramway greenhouse observatory conveyor battery "
    "valve antenna cistern dynamo jetty silo furnace catalog index queue snapshot replica budget invoice roadmap"
).split()
ENGLISH_VERBS = (
    "measured repaired reviewed delayed shipped calibrated replaced audited compared drained painted scheduled rebuilt "
    "inspected simplified migrated tested documented insured negotiated sketched cancelled approved doubled halved"
).split()
ENGLISH_ADJECTIVES = (
    "amber brittle careful distant early faulty gradual hollow idle jagged late mellow narrow open patient quiet rapid "
    "steady tidal uneven vivid weekly yearly brisk cold dense even frugal"
).split()
CHINESE_NOUNS = (
    "账本 港口 涡轮 果园 协议 窑炉 灯塔 档案 罗盘 水库 齿轮箱 亭子 传感器 "
    "采石场 织机 卫星 粮仓 高架桥 铸造厂 望远镜 温室 电池 阀门 天线 码头 "
    "筒仓 目录 队列 快照 副本 预算 发票 路线图"
).split()
CHINESE_VERBS = (
    "测量 修理 评审 推迟 发布 校准 更换 审计 比较 排空 安排 重建 检查 简化 迁移 测试 记录 投保 谈判 草拟 取消 批准"
).split()
CHINESE_ADJECTIVES = (
    "琥珀色的 脆弱的 谨慎的 遥远的 早期的 有缺陷的 逐步的 空闲的 参差的 "
    "狭窄的 开放的 安静的 迅速的 稳定的 不均匀的 每周的"
).split()
SYLLABLES = "ba ko ri ten mu sal vor lin dae fi gru hes jan kel nor pim quo rast tev wil yor zan".split()
CHINESE_SYLLABLES = "青 禾 远 川 若 溪 明 岚 景 澄 柏 舟 星 野 云 帆 知 夏 木 白 石 泉".split()
FOLDERS = (("people", 0.25), ("companies", 0.15), ("meetings", 0.2), ("concepts", 0.15), ("notes", 0.25))


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedPage:
    """One page of the made-up vault; `path` ends in `.md`."""

    path: str
    title: str
    text: str
    chinese: bool


def generate_pages(count: int, *, seed: int = 7) -> Iterator[GeneratedPage]:
    """Yields `count` pages; links lead to pages of the same vault, a few to none."""
    rng = random.Random(seed)
    names = [address(rng, ordinal, chinese=ordinal % 3 == 0) for ordinal in range(count)]
    for ordinal, (path, title) in enumerate(names):
        chinese = ordinal % 3 == 0
        yield GeneratedPage(path=path, title=title, text=page_text(rng, names, path, title, chinese), chinese=chinese)


def write_vault(folder: Path, count: int, *, seed: int = 7) -> list[GeneratedPage]:
    """Writes the pages as files below `folder` and returns them."""
    pages = list(generate_pages(count, seed=seed))
    for page in pages:
        path = folder / page.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page.text, encoding="utf-8")
    return pages


def address(rng: random.Random, ordinal: int, *, chinese: bool) -> tuple[str, str]:
    """A path and a title, both unique by the ordinal."""
    folder = rng.choices([name for name, _ in FOLDERS], [weight for _, weight in FOLDERS])[0]
    syllables = CHINESE_SYLLABLES if chinese else SYLLABLES
    word = "".join(rng.choices(syllables, k=3))
    stem = f"{word}{ordinal}" if chinese else f"{word}-{ordinal}"
    title = f"{word} {ordinal}" if chinese else f"{word.capitalize()} {ordinal}"
    return f"{folder}/{ordinal % 40:02d}/{stem}.md", title


def page_text(rng: random.Random, names: list[tuple[str, str]], path: str, title: str, chinese: bool) -> str:
    """The whole Markdown of one page."""
    kind = {"people": "person", "companies": "company", "meetings": "meeting", "concepts": "concept"}
    day = f"202{rng.randint(4, 6)}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}"
    nouns = CHINESE_NOUNS if chinese else ENGLISH_NOUNS
    page_type = kind.get(path.split("/")[0], "note")
    tags = ", ".join(rng.sample(nouns, 2))
    lines = [
        "---",
        f"title: {title}",
        f"type: {page_type}",
        f"date: {day}",
        f"tags: [{tags}]",
        "---",
        "",
        f"# {title}",
        "",
    ]
    written = 0
    while written < BODY_BYTES_MIN:
        paragraph = " ".join(sentence(rng, names, chinese) for _ in range(5))
        lines += [paragraph, ""]
        written += len(paragraph.encode())
    lines += ["## 时间线" if chinese else "## Timeline", ""]
    lines += [f"- **{day}** | {sentence(rng, names, chinese)}" for _ in range(2)]
    return "\n".join(lines) + "\n"


def sentence(rng: random.Random, names: list[tuple[str, str]], chinese: bool) -> str:
    """One sentence; about one in five has a link, some of those typed by their verb."""
    link = ""
    if rng.random() < 0.2:
        target = (
            rng.choice(names)[0].removesuffix(".md") if rng.random() < 0.95 else f"notes/missing-{rng.randint(1, 99)}"
        )
        verb = (
            rng.choice(("投资了", "创立了", "参加了", "提到"))
            if chinese
            else rng.choice(("invested in", "founded", "attended", "see"))
        )
        link = f"，{verb} [[{target}]]" if chinese else f", and {verb} [[{target}]]"
    if chinese:
        subject = f"{rng.choice(CHINESE_ADJECTIVES)}{rng.choice(CHINESE_NOUNS)}"
        thing = f"{rng.choice(CHINESE_ADJECTIVES)}{rng.choice(CHINESE_NOUNS)}"
        return f"{subject}在{rng.randint(2, 900)}天后{rng.choice(CHINESE_VERBS)}了{thing}{link}。"
    return (
        f"The {rng.choice(ENGLISH_ADJECTIVES)} {rng.choice(ENGLISH_NOUNS)} {rng.choice(ENGLISH_VERBS)} the "
        f"{rng.choice(ENGLISH_ADJECTIVES)} {rng.choice(ENGLISH_NOUNS)} after {rng.randint(2, 900)} days{link}."
    )
