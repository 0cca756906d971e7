"""Sizes, durations and rates: what a person writes and reads."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vtax.units import (
    BINARY,
    DECIMAL,
    LARGEST_BYTES,
    SECONDS,
    format_bytes,
    format_number,
    format_quantity,
    format_seconds,
    parse_bytes,
    parse_seconds,
    scale_of,
)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("512 MiB", 536_870_912),
        ("512MiB", 536_870_912),
        ("  1 KiB ", 1024),
        ("2 GB", 2_000_000_000),
        ("1.5 GiB", 1_610_612_736),
        ("0.5 KiB", 512),
        ("1.005 kB", 1005),  # 1.005 * 1000 is 1004.9999999999999 in floating point
        ("9007199254740993", 9_007_199_254_740_993),  # not a double
        ("1 TiB", 1_099_511_627_776),
        ("7 B", 7),
        ("7", 7),
        (7, 7),
    ],
)
def test_sizes(text: str | int, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize(
    "text",
    ["", "MiB", "-1 MiB", "1 mib", "1 Gib", "1,5 GiB", "1e3", "0", "0 MiB", "0.5", "1.5 B", "1 MiB 2", "٣ MiB", "nan"],
)
def test_texts_that_are_no_sizes(text: str) -> None:
    with pytest.raises(ValueError, match=text or "not a size"):
        parse_bytes(text)


@pytest.mark.parametrize("size", [0, -1, LARGEST_BYTES, 10**400, "4194304 TiB", "9" * 400, "9" * 5000 + " TiB"])
def test_sizes_that_no_machine_has(size: int | str) -> None:
    with pytest.raises(ValueError):
        parse_bytes(size)


def test_a_wrong_size_names_the_units() -> None:
    with pytest.raises(ValueError, match="one of B, KiB, MiB, GiB, TiB, kB, MB, GB, TB"):
        parse_bytes("2 gigs")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90 s", 90),
        ("10 min", 600),
        ("10m", 600),
        ("2 h", 7200),
        ("1 d", 86_400),
        ("1.5 h", 5400),
        ("3", 3),
        (2.5, 2.5),
    ],
)
def test_durations(text: str | float, seconds: float) -> None:
    assert parse_seconds(text) == seconds


def test_milliseconds() -> None:
    assert parse_seconds("250 ms") == pytest.approx(0.25)


@pytest.mark.parametrize("text", ["", "s", "-1 s", "1 year", "1 h 30 min", "soon"])
def test_texts_that_are_no_durations(text: str) -> None:
    with pytest.raises(ValueError, match="s, ms, min, m, h, d"):
        parse_seconds(text)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (100 * 2**30, "100 GiB"),
        (1_610_612_736, "1.5 GiB"),
        (24_684_092 * 1024, "23.54 GiB"),
        (2**42, "4 TiB"),
    ],
)
def test_sizes_for_a_person(size: int, text: str) -> None:
    assert format_bytes(size) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (41.4, "41 s"),
        (59.6, "1 min 0 s"),
        (200, "3 min 20 s"),
        (3599.6, "1 h 0 min"),
        (7500, "2 h 5 min"),
        (90_000, "25 h 0 min"),
    ],
)
def test_durations_for_a_person(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (61.2134, "61.21"),
        (-61.2134, "-61.21"),
        (1234.5, "1,234"),
        (1_234_567, "1,234,567"),
        (0.02, "0.02000"),
        (9.9996, "10.00"),
        (99.996, "100.0"),
        (0.00012344, "0.0001234"),
        (0.00001, "1.000e-05"),
        (2.5e9, "2.500e+09"),
    ],
)
def test_numbers_to_four_figures(value: float, text: str) -> None:
    assert format_number(value) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (61.2134e9, "flop/s", "61.21 Gflop/s"),
        (10.87e-6, "s", "10.87 µs"),
        (3e-10, "s", "0.3000 ns"),
        (75, "s", "75.00 s"),
        (1.2e9, "byte/s", "1.200 GB/s"),
        (9.41e9, "bit/s", "9.410 Gbit/s"),
        (1500, "1/s", "1,500 1/s"),
        (0.02, "1", "0.02000"),
        (12, "op/s", "12.00 op/s"),
        (0.5, "op/s", "0.5000 op/s"),
        (3.1e-10, "s/byte", "0.3100 s/GB"),
        (4.2e-9, "J/bit", "4.200 J/Gbit"),
        (0.0125, "s/token", "12.50 ms/token"),
        (0.0125, "J", "12.50 mJ"),
        (3200, "J", "3.200 kJ"),
    ],
)
def test_quantities_with_their_scaled_unit(value: float, unit: str, text: str) -> None:
    assert format_quantity(value, unit) == text


@pytest.mark.parametrize("magnitude", [0.0, math.inf, math.nan])
def test_what_cannot_be_scaled_stays(magnitude: float) -> None:
    assert scale_of(magnitude, "byte/s") == (1.0, "B/s")


@given(st.integers(1, 10**6), st.sampled_from(sorted(unit for unit in BINARY | DECIMAL if unit)))
def test_a_whole_number_of_any_unit_is_read_exactly(count: int, unit: str) -> None:
    assert parse_bytes(f"{count} {unit}") == count * (BINARY | DECIMAL)[unit]


@given(st.integers(1, 2**50))
def test_a_printed_size_is_read_back_to_half_a_percent(size: int) -> None:
    printed = format_bytes(size)
    number, unit = printed.split()
    assert float(number) * BINARY[unit] == pytest.approx(size, rel=0.005)
    assert parse_bytes(size) == size


@given(st.floats(0, 1e6), st.sampled_from(sorted(unit for unit in SECONDS if unit)))
def test_any_duration_is_read(number: float, unit: str) -> None:
    assert parse_seconds(f"{number:f} {unit}") == pytest.approx(float(f"{number:f}") * SECONDS[unit])


@given(st.text(max_size=20))
def test_any_text_is_a_size_or_a_value_error(text: str) -> None:
    try:
        size = parse_bytes(text)
    except ValueError:
        return
    assert 0 < size < LARGEST_BYTES


@given(st.floats(1e-4, 1e9, exclude_max=True), st.integers(2, 8))
def test_a_number_is_printed_to_its_figures(value: float, digits: int) -> None:
    printed = float(format_number(value, digits).replace(",", ""))
    assert printed == pytest.approx(value, rel=0.51 * 10 ** (1 - digits), abs=0.5 if value >= 10 ** (digits - 1) else 0)


@given(st.floats(1e-12, 1e15), st.sampled_from(["s", "byte/s", "flop/s", "1/s", "1"]))
def test_scaling_changes_the_unit_only(value: float, unit: str) -> None:
    factor, _ = scale_of(value, unit)
    assert value / factor * factor == pytest.approx(value)
    if unit in ("byte/s", "flop/s") and 1 <= value < 1e15:
        assert 1 <= value / factor < 1000
