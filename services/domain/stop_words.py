"""Words that carry no content of their own: queries of only these find nothing, and weights ignore them."""

from __future__ import annotations

ENGLISH = frozenset(
    """a about above after again all also am an and any are as at be because been before being below between both but
    by can could did do does doing done down during each few for from further get got had has have having he her here
    hers him his how i if in into is it its itself just let like may me might more most must my myself no nor not of off
    on once only or other our ours out over own please same shall she should so some such tell than that the their
    theirs them then there these they this those through to too under until up us very was we were what when where
    which while who whom whose why will with would you your yours don't dont didn't didnt doesn't doesnt isn't isnt
    i'm it's s t""".split()
)
"""Question words are among them: they say what kind of answer is wanted, not what it is about."""

CHINESE = frozenset(
    """的 了 是 在 和 与 及 或 有 我 你 您 他 她 它 们 我们 你们 他们 她们 它们 这 那 这个 那个 这些 那些 这里
    那里 哪 哪个 哪些 哪里 哪儿 谁 什么 怎么 怎样 如何 为什么 为何 多少 几 吗 呢 吧 啊 呀 嘛 么 就 也 都 还 又
    再 很 太 更 最 被 把 给 让 从 到 对 于 由 向 以 为 之 其 而 但 但是 所以 因为 如果 可以 能 会 要 想 请
    请问 一个 一下 一些 过 着 得 地 没 没有 不 不是 是否 上 下 里 中 时 时候 个 些 位 关于 已经 曾经 曾
    什么时候 何时 告诉""".split()
)

STOP_WORDS = ENGLISH | CHINESE

CHINESE_STOP_CHARACTERS = frozenset("的了是在和与及或吗呢吧啊呀嘛么就也都很被把之其谁哪")
"""A pair of characters with one of these in it says nothing as a query term, whatever the pair."""
