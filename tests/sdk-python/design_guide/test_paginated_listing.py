"""A listing page by page: a token made of the last key carries the reader on, and the SDK's paginator does the same."""

import base64
import json

from support import create_table, put, s

POSTS = 23
PAGE = 5


def test_a_token_carries_the_reader_on(dynamodb):
    table = create_table(dynamodb, keys="forum:S,posted:S")
    for number in range(POSTS):
        put(dynamodb, table, forum="f", posted=f"2026-01-{number + 1:02}", title=f"post {number}")

    def page(token=None):
        start = {"ExclusiveStartKey": json.loads(base64.b64decode(token))} if token else {}
        answer = dynamodb.query(
            TableName=table, KeyConditionExpression="forum = :f", ExpressionAttributeValues={":f": s("f")},
            Limit=PAGE, ScanIndexForward=False, **start,
        )
        last = answer.get("LastEvaluatedKey")
        titles = [entry["title"]["S"] for entry in answer["Items"]]
        return titles, base64.b64encode(json.dumps(last).encode()) if last else None

    pages, token = [], None
    while True:
        titles, token = page(token)
        pages.append(titles)
        if token is None:
            break
        # A post written meanwhile on an earlier page does not disturb the later ones.
        put(dynamodb, table, forum="f", posted=f"2026-02-{len(pages):02}", title="newer")
    expected = [f"post {number}" for number in reversed(range(POSTS))]
    assert [title for titles in pages for title in titles] == expected
    assert [len(titles) for titles in pages] == [5, 5, 5, 5, 3]


def test_the_paginator_of_the_sdk(dynamodb):
    table = create_table(dynamodb, keys="forum:S,posted:S")
    for number in range(POSTS):
        put(dynamodb, table, forum="f", posted=f"{number:04}")
    pages = dynamodb.get_paginator("query").paginate(
        TableName=table, KeyConditionExpression="forum = :f", ExpressionAttributeValues={":f": s("f")},
        PaginationConfig={"PageSize": 10},
    )
    assert [page["Count"] for page in pages] == [10, 10, 3]
