"""The metric of all samples in one line: the worst sample speaks for all."""

from qnn.build.measured import MetricValue
from qnn.build.metrics import summarise
from qnn.model.spec import MetricGate


def values(name: str, *pairs: tuple[float | str | bool, float | str | bool]) -> list[MetricValue]:
    return [MetricValue(name, number, on_float, on_htp) for number, (on_float, on_htp) in enumerate(pairs)]


def test_the_sample_nearest_to_missing_its_gate_is_shown() -> None:
    numbers = values("iou", (1.0, 0.99), (1.0, 0.98), (1.0, 0.995))
    assert summarise(numbers, {"iou": MetricGate(minimum=0.9)})[0].htp_value == 0.98
    assert summarise(numbers, {"iou": MetricGate(maximum=1.0)})[0].htp_value == 0.995
    drops = values("score", (0.9, 0.5), (0.4, 0.1))
    assert summarise(drops, {"score": MetricGate(max_drop=0.5)})[0].htp_value == 0.5
    assert summarise(values("free", (1.0, 1.1), (5.0, 4.0)), {})[0].htp_value == 4.0


def test_texts_count_what_is_equal_and_show_the_first_that_is_not() -> None:
    (text,) = summarise(values("text", ("a", "a"), ("b", "c"), ("d", "d")), {"text": MetricGate(equal=True)})
    assert (text.samples, text.equal, text.float_value, text.htp_value, text.gate) == (3, 2, "b", "c", "equal")


def test_true_is_not_one() -> None:
    (value,) = summarise(values("speech", (True, 1.0)), {"speech": MetricGate(equal=True)})
    assert value.equal == 0


def test_names_keep_their_order() -> None:
    mixed = [*values("b", (1.0, 1.0)), *values("a", (1.0, 1.0)), *values("b", (2.0, 2.0))]
    assert [(metric.name, metric.samples) for metric in summarise(mixed, {})] == [("b", 2), ("a", 1)]
