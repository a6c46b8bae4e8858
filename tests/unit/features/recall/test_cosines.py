import numpy as np
import pytest
from mneme_server.features.recall.confidence import E5, USUAL, scale_of


def test_the_default_models_cosines_stay_bit_for_bit() -> None:
    cosines = np.array([-0.3, 0.1, 0.777, np.nan])
    assert scale_of("all-MiniLM-L6-v2-int8").usual(cosines) is cosines
    assert scale_of("a model that nobody measured") == USUAL


def test_cosines_of_another_model_say_what_the_default_models_would() -> None:
    scale = scale_of(E5)
    unrelated, answer, nothing = scale.usual(np.array([0.78, 0.862, np.nan]))
    assert unrelated == pytest.approx(0.24, abs=0.02)
    assert answer == pytest.approx(0.6, abs=0.02)
    assert np.isnan(nothing)
    assert scale.usual(np.array([1.0, -1.0])).tolist() == [1.0, -1.0]


def test_a_threshold_is_brought_back_to_the_models_own_cosines() -> None:
    own = scale_of(E5).of_usual(0.35)
    assert scale_of(E5).usual(np.array([own])) == pytest.approx(0.35)
    assert USUAL.of_usual(0.35) == 0.35
