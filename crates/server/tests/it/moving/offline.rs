use serde_json::json;
use zenobe_testing::{Postgres, Process, Proxy, TemporaryDirectory, wait_until};

use super::{
    Places, content, create_plain_table, move_command, name, put_large_items, refuse, rows, run,
    scan, serve, serve_command, succeed, text,
};
use crate::commands::zenobe;

/// Nothing changes on the way to a PostgreSQL and back: neither what clients see, nor what they go on with.
#[test]
fn everything_arrives_there_and_back_again() {
    let directory = TemporaryDirectory::new("move-round-trip");
    let (here, back) = (directory.path().join("here"), directory.path().join("back"));
    let (here, back) = (text(&here), text(&back));
    let there = &Postgres::shared().database();
    let server = serve(here);
    let mut client = server.client();
    content::fill(&mut client);
    let iterators = content::iterators(&mut client, "LATEST");
    let seen = content::see(&mut client);
    server.stop();

    let said = succeed(&mut move_command(here, there));
    assert!(said.contains("checksums") && said.contains(name(there)), "{said}");
    refuse(&mut serve_command(here), &["was moved to", name(there), "--abandon"]);
    refuse(&mut move_command(here, there), &["was moved to", "already"]);
    let server = serve(there);
    let mut client = server.client();
    assert_eq!(content::see(&mut client), seen);
    content::check_it_goes_on(&mut client, iterators);
    let iterators = content::iterators(&mut client, "LATEST");
    let seen = content::see(&mut client);
    server.stop();

    succeed(&mut move_command(there, back));
    refuse(&mut serve_command(there), &["was moved to", back]);
    let server = serve(back);
    let mut client = server.client();
    assert_eq!(content::see(&mut client), seen);
    content::check_it_goes_on(&mut client, iterators);
    server.stop();
    // Whoever insists can have the old copy.
    let said = succeed(&mut zenobe(&["move", "--from", there, "--abandon"]));
    assert!(said.contains("can be served again"), "{said}");
    serve(there).stop();
}

#[test]
fn only_what_is_there_is_moved_and_only_to_an_empty_place() {
    let directory = TemporaryDirectory::new("move-refusals");
    let path = |name: &str| text(&directory.path().join(name)).to_owned();
    let (full, other, new) = (path("full"), path("other"), path("new"));
    for place in [&full, &other] {
        let server = serve(place);
        create_plain_table(&mut server.client(), "counters");
        server.stop();
    }
    refuse(&mut move_command(&path("missing"), &new), &["no data directory"]);
    refuse(&mut move_command(&full, &other), &["is not empty"]);
    refuse(&mut move_command(&full, &full), &["to itself"]);
    refuse(&mut move_command(&full, "mysql://h/d"), &["postgres://"]);
    refuse(&mut zenobe(&["move", "--from", &full]), &["--to"]);
    refuse(&mut zenobe(&["move", "--from", &full, "--abandon"]), &["is not being moved"]);
    let there = Postgres::shared().database();
    refuse(&mut move_command(&there, &new), &["nothing to move"]);
    let server = serve(&full);
    refuse(&mut move_command(&full, &new), &["has it open"]);
    server.stop();
    // None of this has changed anything.
    serve(&full).stop();
    serve(&other).stop();
}

/// A node that was forgotten can't write to what has been moved away.
#[test]
fn a_node_on_the_old_store_writes_nothing_any_more() {
    let directory = TemporaryDirectory::new("move-fence");
    let new = directory.path().join("new");
    let there = Postgres::shared().database();
    let forgotten = serve(&there);
    let mut client = forgotten.client();
    create_plain_table(&mut client, "counters");
    let put = json!({"TableName": "counters", "Item": {"pk": {"S": "a"}}});
    client.expect("PutItem", &put);
    succeed(&mut move_command(&there, text(&new)));
    let other = json!({"TableName": "counters", "Item": {"pk": {"S": "b"}}});
    let reply = client.call("PutItem", &other).expect("an answer");
    assert_eq!(reply.status, 500, "{}", reply.body);
    forgotten.kill();
}

/// Killed at any moment, a move is continued by the same command; until then neither store is served.
#[test]
fn a_move_that_is_killed_goes_on() {
    let places = Places::new("move-killed");
    let (here, there) = places.both();
    let server = serve(here);
    let mut client = server.client();
    create_plain_table(&mut client, "counters");
    put_large_items(&mut client, "counters", 120);
    let items = scan(&mut client, &json!({"TableName": "counters"}));
    assert_eq!(items.len(), 3_000);
    server.stop();

    // The network falls silent in the middle, so that the move is still under way when it is killed.
    let proxy = Proxy::start(Postgres::shared().port);
    let target = &proxy.url(there);
    let mut copied = 0;
    for kill in 0..3 {
        proxy.silence_after(10 << 20);
        let mut moving = Process::start(&mut move_command(here, target)).unwrap();
        wait_until(|| proxy.is_silent() || moving.ended().is_some());
        assert!(proxy.is_silent(), "kill {kill}: {}", moving.output().text());
        moving.kill();
        proxy.reset();
        let now = rows(there);
        assert!(now > copied, "what was copied stays, and more has been");
        copied = now;
        if run(&mut move_command("/nonexistent", target)).status.success() {
            panic!("there is nothing to move");
        }
        refuse(&mut serve_command(here), &["is being moved to", "--abandon"]);
        refuse(&mut serve_command(there), &["unfinished copy of", here]);
    }
    succeed(&mut move_command(here, target));
    refuse(&mut serve_command(here), &["was moved to"]);
    let server = serve(there);
    assert_eq!(scan(&mut server.client(), &json!({"TableName": "counters"})), items);
    server.stop();
}
