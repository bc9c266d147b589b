"""A graph as an adjacency list: an edge is an item, and an index on its target walks it backwards."""

from support import create_table, names_in, put, s

EDGES = [("invoice1", "bill1"), ("invoice1", "bill2"), ("invoice2", "bill2"), ("invoice2", "bill3")]


def test_edges_in_both_directions(dynamodb):
    table = create_table(dynamodb, keys="node:S,target:S", gsi=[("backwards", "target:S,node:S", ["note"])])
    for node in sorted({node for edge in EDGES for node in edge}):
        # A node points at itself; its own attributes live there.
        put(dynamodb, table, node=node, target=node, note=f"about {node}")
    for node, target in EDGES:
        put(dynamodb, table, node=node, target=target, note="edge")

    def neighbours(name, value, **more):
        page = dynamodb.query(
            TableName=table, KeyConditionExpression=f"{name} = :v", ExpressionAttributeValues={":v": s(value)}, **more
        )
        return page["Items"]

    assert names_in(neighbours("node", "invoice1"), "target") == ["bill1", "bill2", "invoice1"]
    incoming = neighbours("target", "bill2", IndexName="backwards")
    assert names_in(incoming, "node") == ["bill2", "invoice1", "invoice2"]
    assert names_in(incoming, "note") == ["about bill2", "edge", "edge"]
