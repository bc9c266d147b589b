"""Point-in-time recovery and backups on PostgreSQL: the tests of the embedded store, which these fixtures aim there."""

import pytest

import support
from postgres import OnStore, Postgres
from test_backups import (  # noqa: F401 (collected here)
    test_a_backup_outlives_its_table,
    test_backups_and_restores_survive_a_restart,
    test_the_paginator,
)
from test_point_in_time_recovery import (  # noqa: F401 (collected here)
    test_a_deleted_table_comes_back,
    test_a_restore_survives_a_restart,
    test_commands,
    test_items_older_than_an_index_are_restored,
    test_large_versions_come_in_pages,
    test_reads_as_of_a_second,
    test_restores,
    test_the_window,
)


@pytest.fixture(scope="module")
def postgres():
    support.skip_if_aimed_elsewhere()
    postgres = Postgres()
    yield postgres
    postgres.stop()


@pytest.fixture(scope="module")
def endpoint(postgres):
    server = OnStore(postgres.url)
    yield server.endpoint
    assert server.process.poll() is None, "the server died:\n" + "".join(server.output)
    assert server.stop() == 0


@pytest.fixture(scope="module")
def dynamodb(endpoint):
    return support.client(endpoint)


@pytest.fixture
def own_server(postgres):
    """A server with a database of its own that the test may stop, kill and start again."""
    server = OnStore(postgres.new_database())
    yield server
    server.kill()


def test_a_restore_goes_on_at_another_node(postgres):
    url = postgres.new_database()
    first, second = OnStore(url), OnStore(url)
    try:
        dynamodb, other = (support.client(node.endpoint) for node in (first, second))
        table = support.create_table(dynamodb)
        recovery = {"PointInTimeRecoveryEnabled": True}
        dynamodb.update_continuous_backups(TableName=table, PointInTimeRecoverySpecification=recovery)
        for start in range(0, 500, 25):
            requests = [
                {"PutRequest": {"Item": support.item(pk=str(number), v=1, pad="x" * 2_000)}}
                for number in range(start, start + 25)
            ]
            dynamodb.batch_write_item(RequestItems={table: requests})
        dynamodb.restore_table_to_point_in_time(
            SourceTableName=table, TargetTableName="restored", UseLatestRestorableTime=True
        )
        first.kill()
        support.put(other, table, pk="later", v=2)
        support.wait_until_active(other, "restored")
        found = support.all_items(other.scan, TableName="restored")
        assert len(found) == 500 and {item["v"]["N"] for item in found} == {"1"}
    finally:
        first.kill()
        second.kill()
