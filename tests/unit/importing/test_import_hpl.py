"""HPL as other people's logs have it: titles of NVIDIA's build, one size solved in several ways."""

from __future__ import annotations

from builders.logs import readings

LINE = "=" * 80
TITLE = "HPL-NVIDIA 23.10.0  -- NVIDIA accelerated HPL benchmark -- NVIDIA"
HPL = "HPLinpack 2.1  --  High-Performance Linpack benchmark  --   October 26, 2012"
CHECK = "||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=   3.14159265e-03 ...... PASSED"
ROWS = {
    "WR11C2R2": "WR11C2R2       10000   192     1     2               6.11            1.09125e+02",
    "WR11C2R4": "WR11C2R4       10000   192     1     2               6.20            1.07541e+02",
}


def log(*rows: str, titles: tuple[str, ...] = (HPL,)) -> str:
    """In the form of HPL's own output and of its builds, with rates that fit their times."""
    solved = "".join(f"{row}\n{CHECK}\n" for row in rows)
    heads = "".join(f"{LINE}\n{title}\n" for title in titles)
    counts = (
        f"              {len(rows)} tests completed and passed residual checks,\n"
        "              0 tests completed and failed residual checks,\n"
        "              0 tests skipped because of illegal input values.\n"
    )
    finished = f"Finished  {len(rows):5d} tests with the following results:\n{counts}"
    return f"{heads}{LINE}\n{solved}\n{finished}\nEnd of Tests.\n"


def test_a_title_above_hpls_own_is_no_run_of_its_own() -> None:
    text = log(ROWS["WR11C2R2"], titles=(TITLE, HPL))
    for several in (text, text * 2, log(ROWS["WR11C2R2"], titles=(TITLE,)), log(ROWS["WR11C2R2"])):
        found = readings(several)
        assert [len(reading.values) for reading in found] == [3] * several.count("End of Tests.")
        assert not any(reading.refusals for reading in found)


def test_one_size_in_several_ways() -> None:
    (reading,) = readings(log(*ROWS.values()))
    rates = {value.labels["variant"]: value.value for value in reading.values if value.metric.name == "HPL"}
    assert rates == {"WR11C2R2": 1.09125e11, "WR11C2R4": 1.07541e11}
    (single,) = readings(log(ROWS["WR11C2R2"]))
    assert all("variant" not in value.labels for value in single.values)


def test_one_size_twice_in_the_same_way_is_refused() -> None:
    (reading,) = readings(log(ROWS["WR11C2R2"], ROWS["WR11C2R2"]))
    assert reading.values == []
    assert {refusal.reason for refusal in reading.refusals} == {"this size appears twice in one run"}
