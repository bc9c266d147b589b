"""`zenobe export`: files that DuckDB reads, and that `zenobe import` reads back."""

import base64
import decimal
import json
import os
import subprocess

import duckdb
import pytest

import support
from object_store import ObjectStore
from server import binary
from test_imports import TO_WIRE, canonical, items, scan


@pytest.fixture
def run(endpoint, tmp_path):
    def run(*arguments, status=0, **environment):
        command = [binary(), *map(str, arguments)]
        environment = {**os.environ, "ZENOBE_ENDPOINT": endpoint, **environment}
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


def put(client, table, *wire):
    for item in wire:
        client.put_item(TableName=table, Item=item)


def query(text):
    with duckdb.connect() as connection:
        return connection.execute(text).fetchall()


def columns(path):
    return {name: kind for name, kind, *_ in query(f"DESCRIBE SELECT * FROM read_parquet('{path}', hive_partitioning = false)")}


def test_columns_have_the_types_of_their_values(run, dynamodb, tmp_path):
    table = support.create_table(dynamodb, keys="pk:S,sk:N")
    put(
        dynamodb, table,
        {
            "pk": {"S": "a"}, "sk": {"N": "1"}, "text": {"S": "é\n\"x\""}, "price": {"N": "19.99"}, "big": {"N": "1e30"},
            "wide": {"N": "1e100"}, "bytes": {"B": b"\x00\xff"}, "on": {"BOOL": True}, "tags": {"SS": ["x", "y"]},
            "ns": {"NS": ["1.5", "-2"]}, "list": {"L": [{"N": "1"}, {"NULL": True}, {"N": "3"}]}, "empty": {"L": []},
            "map": {"M": {"a": {"S": "b"}, "c": {"NULL": True}}}, "deep": {"M": {"l": {"L": [{"N": "1"}, {"S": "é"}, {"BOOL": False}]}}},
            "mixed": {"S": "text"}, "nothing": {"NULL": True},
        },
        {"pk": {"S": "a"}, "sk": {"N": "-9000000000000000000"}, "mixed": {"N": "1.50"}, "price": {"N": "-7"}, "wide": {"N": "1e-100"},
         "on": {"BOOL": False}, "map": {"M": {}}, "list": {"L": []}},
    )
    assert "2 items in 1 file:" in run("export", table, "--to", tmp_path / "lake")
    path = tmp_path / f"lake/table={table}/part-00000.parquet"
    assert columns(path) == {
        "pk": "VARCHAR", "sk": "BIGINT", "text": "VARCHAR", "price": "DECIMAL(4,2)", "big": "DECIMAL(31,0)", "wide": "DOUBLE",
        "bytes": "BLOB", "on": "BOOLEAN", "tags": "VARCHAR[]", "ns": "DECIMAL(2,1)[]", "list": "BIGINT[]", "empty": "VARCHAR[]",
        "map": "MAP(VARCHAR, VARCHAR)", "deep": "JSON", "mixed": "JSON", "nothing": "VARCHAR",
    }
    number = decimal.Decimal
    names = 'sk, text, price, big, wide, bytes, "on", tags, ns, list, empty, map, deep, mixed, nothing'
    assert query(f"SELECT {names} FROM read_parquet('{path}') ORDER BY sk") == [
        (-9000000000000000000, None, number("-7.00"), None, 1e-100, None, False, None, None, [], None, {}, None, "1.5", None),
        (1, 'é\n"x"', number("19.99"), number(10) ** 30, 1e100, b"\x00\xff", True, ["x", "y"], [number("-2.0"), number("1.5")],
         [1, None, 3], [], {"a": "b", "c": None}, '{"l":[1,"é",false]}', '"text"', None),
    ]
    assert (tmp_path / f"lake/table={table}/_SUCCESS").exists()
    assert not list((tmp_path / "lake").glob(".zenobe*")), "nothing else is left"


def test_entities_are_partitions_with_columns_of_their_own(run, dynamodb, tmp_path):
    table = support.create_table(dynamodb, keys="pk:S,sk:S")
    for customer in range(40):
        key = {"S": f"CUSTOMER#{customer}"}
        put(dynamodb, table, {"pk": key, "sk": {"S": "PROFILE"}, "name": {"S": f"n{customer}"}})
        put(dynamodb, table, *({"pk": key, "sk": {"S": f"ORDER#{n}"}, "total": {"N": str(n)}, "type": {"S": "a/b"}} for n in range(3)))
    put(dynamodb, table, {"pk": {"S": "plain"}, "sk": {"S": "x"}})
    assert "161 items of 3 entities in 3 files" in run("export", table, "--to", tmp_path / "lake")
    files = f"read_parquet('{tmp_path}/lake/**/*.parquet', hive_partitioning = true, union_by_name = true)"
    counts = query(f'SELECT "table", entity, count(*), sum(total) FROM {files} GROUP BY ALL ORDER BY entity')
    # Hive's name for NULL, which Spark and pyarrow know and DuckDB shows.
    unnamed = (table, "__HIVE_DEFAULT_PARTITION__", 1, None)
    assert counts == [(table, "CUSTOMER", 40, None), (table, "ORDER", 120, 120), unnamed]
    orders = tmp_path / f"lake/table={table}/entity=ORDER/part-00000.parquet"
    assert list(columns(orders))[:4] == ["pk", "sk", "total", "type"]
    run("export", table, "--to", tmp_path / "by-type", "--entity", "type")
    folders = sorted(path.name for path in (tmp_path / f"by-type/table={table}").glob("entity=*"))
    assert folders == ["entity=__HIVE_DEFAULT_PARTITION__", "entity=a%2Fb"]
    partitions = f"read_parquet('{tmp_path}/by-type/**/*.parquet', hive_partitioning = true, union_by_name = true)"
    assert query(f"SELECT count(*) FROM {partitions} WHERE entity = 'a/b'") == [(120,)]
    run("export", table, "--to", tmp_path / "all", "--no-entities")
    assert query(f"SELECT count(*) FROM read_parquet('{tmp_path}/all/*/part-*.parquet')") == [(161,)]


def test_an_export_is_replaced_only_on_request(run, dynamodb, tmp_path):
    table = support.create_table(dynamodb, keys="pk:S")
    put(dynamodb, table, {"pk": {"S": "A#1"}}, {"pk": {"S": "B#1"}})
    run("export", table, "--to", tmp_path / "lake")
    assert "replace it with --overwrite" in run("export", table, "--to", tmp_path / "lake", status=1)
    dynamodb.delete_item(TableName=table, Key={"pk": {"S": "B#1"}})
    run("export", table, "--to", tmp_path / "lake", "--overwrite")
    root = tmp_path / f"lake/table={table}"
    parts = sorted(str(path.relative_to(root)) for path in root.rglob("part-*"))
    assert parts == ["entity=A/part-00000.parquet"]
    # An export that was interrupted leaves no mark.
    (root / "_SUCCESS").unlink()
    run("export", table, "--to", tmp_path / "lake")
    (root / "notes.txt").write_text("mine")
    assert "notes.txt; choose another place" in run("export", table, "--to", tmp_path / "lake", "--overwrite", status=1)
    assert "does not exist" in run("export", "there-is-none", "--to", tmp_path / "lake", status=1)
    assert "it must be parquet, csv" in run("export", table, "--to", tmp_path, "--format", "xml", status=2)


@pytest.mark.parametrize("format", ["dynamodb-json", "ion"])
def test_other_formats_are_read_back(run, dynamodb, tmp_path, format):
    table, copy = support.create_table(dynamodb, keys="pk:S,sk:N"), support.unique_name("copy")
    put(dynamodb, table, *(TO_WIRE(item)["M"] for item in items(50)))
    run("export", table, "--to", tmp_path / "files", "--format", format)
    run("import", tmp_path / f"files/table={table}", "--table", copy, "--keys", "pk:S,sk:N", "--format", format)
    assert canonical(scan(dynamodb, copy)) == canonical(scan(dynamodb, table))


def plain(value):
    """A value as the plain JSON of a CSV field has it: bytes in base64, sets as arrays."""
    [(kind, value)] = value.items()
    return {
        "N": decimal.Decimal, "B": lambda it: base64.b64encode(it).decode(), "NULL": lambda _: None,
        "NS": lambda it: sorted(map(decimal.Decimal, it)), "SS": sorted,
        "BS": lambda it: [base64.b64encode(member).decode() for member in sorted(it)],
        "L": lambda it: [plain(member) for member in it],
        "M": lambda it: {name: plain(member) for name, member in it.items()},
    }.get(kind, lambda it: it)(value)


def assert_kept_by_csv(copies, originals, keys):
    """Keys keep their types. All other attributes become strings, and empty ones and NULL are left out."""
    assert len(copies) == len(originals) > 0
    by_key = {json.dumps([copy[name] for name in keys], default=repr): copy for copy in copies}
    for original in originals:
        copy = by_key[json.dumps([original[name] for name in keys], default=repr)]
        kept = {name for name, value in original.items() if value not in ({"NULL": True}, {"S": ""}, {"B": b""})}
        assert set(copy) == kept
        for name in kept - set(keys):
            [(kind, text)] = copy[name].items()
            assert kind == "S"
            if set(original[name]) & {"S", "N", "B"}:
                assert text == str(plain(original[name])) or decimal.Decimal(text) == plain(original[name])
            else:
                assert json.loads(text, parse_int=decimal.Decimal, parse_float=decimal.Decimal) == plain(original[name])


def test_csv_keeps_keys_and_the_text_of_everything_else(run, dynamodb, tmp_path):
    awkward = ["a,b", 'quoted "text"', "two\nlines", "cr\r\nlf", " spaces ", "\ufeffmark", "'", "é😀", "null", "#", "\\N", ""]
    binary = [
        {"pk": {"B": bytes([0, 255, n])}, "sk": {"S": f"T#{n}"}, 'a "name", with all': {"S": text}, "b": {"B": b""}}
        for n, text in enumerate(awkward)
    ]
    for keys, wire in [("pk:S,sk:N", [TO_WIRE(item)["M"] for item in items(50)]), ("pk:B,sk:S", binary)]:
        table, copy = support.create_table(dynamodb, keys=keys), support.unique_name("copy")
        put(dynamodb, table, *wire)
        run("export", table, "--to", tmp_path / "files", "--format", "csv")
        run("import", tmp_path / f"files/table={table}", "--table", copy, "--keys", keys)
        assert_kept_by_csv(scan(dynamodb, copy), scan(dynamodb, table), ["pk", "sk"])


def test_parquet_is_for_analysis_only(run, dynamodb, tmp_path):
    table = support.create_table(dynamodb, keys="pk:S")
    put(dynamodb, table, {"pk": {"S": "a"}})
    run("export", table, "--to", tmp_path / "files")
    refused = run("import", tmp_path / f"files/table={table}", "--table", table, status=1)
    assert "part-00000.parquet is a Parquet file" in refused and "--format dynamodb-json or ion" in refused


def test_csv_has_all_columns(run, dynamodb, tmp_path):
    table = support.create_table(dynamodb, keys="pk:S")
    put(dynamodb, table, {"pk": {"S": "a"}, "x": {"N": "1.5"}}, {"pk": {"S": "b"}, "y": {"L": [{"S": "c,d"}]}})
    run("export", table, "--to", tmp_path / "files", "--format", "csv")
    rows = query(f"SELECT * FROM read_csv('{tmp_path}/files/*/part-*.csv.gz', header = true, hive_partitioning = false) ORDER BY pk")
    assert rows == [("a", 1.5, None), ("b", None, '["c,d"]')]


def test_the_past_and_an_object_store(run, dynamodb, endpoint, tmp_path):
    support.skip_if_aimed_elsewhere()
    table = support.create_table(dynamodb, keys="pk:S")
    recovery = {"PointInTimeRecoveryEnabled": True}
    dynamodb.update_continuous_backups(TableName=table, PointInTimeRecoverySpecification=recovery)
    put(dynamodb, table, *({"pk": {"S": f"k{n}"}, "n": {"N": str(n)}} for n in range(100)))
    written = latest(dynamodb, table)
    support.wait_until(lambda: latest(dynamodb, table) > written, "the next second")
    put(dynamodb, table, {"pk": {"S": "later"}})
    store = ObjectStore()
    try:
        store.s3.create_bucket(Bucket="lake")
        environment = {"ZENOBE_S3_ENDPOINT": store.endpoint, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
        run("export", table, "--to", "s3://lake/raw/", "--as-of", written.isoformat(), **environment)
        found = store.s3.list_objects_v2(Bucket="lake")["Contents"]
        assert {it["Key"] for it in found} == {f"raw/table={table}/{name}" for name in ("_SUCCESS", "part-00000.parquet")}
        store.s3.download_file("lake", f"raw/table={table}/part-00000.parquet", str(tmp_path / "x.parquet"))
        assert query(f"SELECT count(*), sum(n) FROM read_parquet('{tmp_path}/x.parquet')") == [(100, 4950)]
        success = store.s3.get_object(Bucket="lake", Key=f"raw/table={table}/_SUCCESS")["Body"].read()
        assert json.loads(success)["files"] == 1
        assert "bucket does not exist" in run("export", table, "--to", "s3://missing/", status=1, **environment)
    finally:
        store.close()


def latest(client, table):
    """The second that is now, as the server sees it."""
    described = client.describe_continuous_backups(TableName=table)
    recovery = described["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"]
    return recovery["LatestRestorableDateTime"]


def test_a_killed_export_leaves_nothing_behind(run, dynamodb, endpoint, tmp_path):
    support.skip_if_aimed_elsewhere()
    table = support.create_table(dynamodb, keys="pk:S")
    put(dynamodb, table, *({"pk": {"S": f"k{n}"}, "n": {"N": str(n)}} for n in range(100)))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    store = ObjectStore()
    try:
        store.s3.create_bucket(Bucket="lake")
        environment = {
            "ZENOBE_S3_ENDPOINT": store.endpoint, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
            "TMPDIR": str(temporary),
        }
        arguments = ["export", table, "--to", "s3://lake/raw/"]
        store.proxy.hold_after(0)
        killed = subprocess.Popen(
            [binary(), *arguments], env={**os.environ, "ZENOBE_ENDPOINT": endpoint, **environment},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        try:
            support.wait_until(store.proxy.holds, "a file is held")
        finally:
            killed.kill()
            killed.wait()
        store.proxy.release()
        assert len(list(temporary.iterdir())) == 1
        found = store.s3.list_objects_v2(Bucket="lake").get("Contents", [])
        # The bucket may have the files of other tests: all stores of a process are one.
        assert not any(it["Key"].endswith(f"table={table}/_SUCCESS") for it in found)
        run(*arguments, **environment)
        assert list(temporary.iterdir()) == []
        store.s3.download_file("lake", f"raw/table={table}/part-00000.parquet", str(tmp_path / "x.parquet"))
        assert query(f"SELECT count(*), sum(n) FROM read_parquet('{tmp_path}/x.parquet')") == [(100, 4950)]
    finally:
        store.close()


def test_what_a_killed_export_left_on_the_disk_is_replaced(run, dynamodb, tmp_path):
    table = support.create_table(dynamodb, keys="pk:S")
    put(dynamodb, table, *({"pk": {"S": f"k{n}"}, "n": {"N": str(n)}} for n in range(10)))
    waiting, part = tmp_path / f"lake/.zenobe-export-{table}", tmp_path / f"lake/table={table}/part-00000.parquet"
    for left in (waiting / "0", part):
        left.parent.mkdir(parents=True)
        left.write_bytes(b"half of it")
    run("export", table, "--to", tmp_path / "lake")
    assert not waiting.exists()
    assert query(f"SELECT count(*), sum(n) FROM read_parquet('{part}')") == [(10, 45)]
