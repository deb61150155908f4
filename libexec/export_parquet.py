"""Writes JSON lines, read from descriptor 3, as a Parquet file: export_parquet.py FILE name:TYPE,..."""
import datetime
import json
import sys

import pyarrow
import pyarrow.parquet

kinds = {"VARCHAR": pyarrow.string(), "BOOLEAN": pyarrow.bool_(), "BIGINT": pyarrow.int64(),
         "DOUBLE": pyarrow.float64(), "TIMESTAMP": pyarrow.timestamp("ms")}
columns = [word.split(":") for word in sys.argv[2].split(",")]
schema = pyarrow.schema([(name, kinds[kind]) for name, kind in columns])
times = [name for name, kind in columns if kind == "TIMESTAMP"]
with open(3, encoding="utf-8") as lines, pyarrow.parquet.ParquetWriter(sys.argv[1], schema) as writer:
    for line in lines:
        row = json.loads(line)
        for name in times:
            row[name] = row[name] and datetime.datetime.fromisoformat(row[name].rstrip("Z"))
        writer.write_table(pyarrow.Table.from_pylist([row], schema=schema))
