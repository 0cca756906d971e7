"""What iozone measures, of which operations."""

from vtax.model.metric import Kind, Metric

KIB = 1024  # iozone's kB are 1024 bytes, of sizes and of rates: it shifts bytes by 10
THROUGHPUT = Metric(
    name="throughput",
    unit="byte/s",
    kind=Kind.RATE_FIXED_WORK,
    meaning="bytes per second of one operation at one file and record size (in operations mode, operations x record "
    "size); primary for write and read",
)
PRIMARY = THROUGHPUT.model_copy(update={"primary": True})
HEADLINES = ("write", "read")  # 13 operations at every size would leave no claim standing after the correction
OPERATIONS = Metric(
    name="operations_rate",
    unit="1/s",
    kind=Kind.RATE_FIXED_WORK,
    meaning="operations of one record each per second, measured in operations mode only",
)

TESTS = {  # what `-i` takes -> the columns it fills
    0: ("write", "rewrite"),
    1: ("read", "reread"),
    2: ("random_read", "random_write"),
    3: ("backward_read",),
    4: ("record_rewrite",),
    5: ("stride_read",),
    6: ("fwrite", "frewrite"),
    7: ("fread", "freread"),
}
ALL = tuple(column for columns in TESTS.values() for column in columns)  # in the order of the table
