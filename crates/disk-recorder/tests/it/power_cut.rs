//! What a power cut leaves, change by change.

use zenobe_disk_recorder::{Data, Disk, Event, Image, Names, Survival};

fn open(handle: u32, path: &str, is_created: bool) -> Event {
    Event::Open { handle: (1, handle), path: path.to_owned(), is_created, is_truncated: false }
}

fn write(handle: u32, offset: u64, data: &[u8]) -> Event {
    Event::Write { handle: (1, handle), offset, data: data.to_vec() }
}

fn sync_begin(handle: u32, number: u64) -> Event {
    Event::SyncBegin { handle: (1, handle), number }
}

fn sync_end(handle: u32, number: u64) -> Event {
    Event::SyncEnd { handle: (1, handle), number }
}

fn sync(handle: u32, number: u64) -> [Event; 2] {
    [sync_begin(handle, number), sync_end(handle, number)]
}

fn disk(events: &[Event]) -> Disk {
    let mut disk = Disk::new(&Image::default());
    events.iter().for_each(|event| disk.apply(event));
    disk
}

fn survivors(disk: &Disk, survival: &Survival) -> Vec<(String, Vec<u8>)> {
    let entries = disk.after_power_cut(survival).entries.into_iter();
    entries.map(|(path, content)| (path, content.unwrap_or_default())).collect()
}

fn is(found: &[(String, Vec<u8>)], expected: &[(&str, &[u8])]) -> bool {
    let pairs = expected.iter().map(|(path, content)| ((*path).to_owned(), content.to_vec()));
    found == pairs.collect::<Vec<_>>()
}

#[test]
fn a_name_is_durable_when_its_directory_is_synced() {
    let mut events = vec![open(1, "a", true), write(1, 0, b"x")];
    events.extend(sync(1, 1));
    assert!(is(&survivors(&disk(&events), &Survival::SYNCED), &[]), "only the content was synced");
    // A journal makes names durable with any sync.
    let journaled = Survival { names: Names::Journaled, ..Survival::SYNCED };
    assert!(is(&survivors(&disk(&events), &journaled), &[("a", b"x")]));
    events.push(open(2, "", false));
    events.extend(sync(2, 2));
    assert!(is(&survivors(&disk(&events), &Survival::SYNCED), &[("a", b"x")]));
    // The name stays durable until the next sync changes it.
    events.push(Event::Rename { from: "a".into(), to: "b".into() });
    assert!(is(&survivors(&disk(&events), &Survival::SYNCED), &[("a", b"x")]));
    events.extend(sync(2, 3));
    assert!(is(&survivors(&disk(&events), &Survival::SYNCED), &[("b", b"x")]));
    events.push(Event::Unlink { path: "b".into() });
    assert!(is(&survivors(&disk(&events), &Survival::SYNCED), &[("b", b"x")]));
    assert!(is(&survivors(&disk(&events), &Survival::ALL), &[]));
}

/// Two files in a synced directory.
fn named() -> Vec<Event> {
    let mut events = vec![open(1, "a", true), open(9, "", false)];
    events.extend(sync(9, 9));
    events
}

#[test]
fn a_sync_covers_changes_before_its_start() {
    let mut events = named();
    events.extend([write(1, 0, b"1"), sync_begin(1, 1), write(1, 1, b"2")]);
    assert!(is(&survivors(&disk(&events), &Survival::SYNCED), &[("a", b"")]), "it has not ended");
    events.push(sync_end(1, 1));
    assert!(is(&survivors(&disk(&events), &Survival::SYNCED), &[("a", b"1")]));
    assert!(is(&survivors(&disk(&events), &Survival::ALL), &[("a", b"12")]));
}

#[test]
fn changes_of_a_failed_sync_are_never_durable() {
    let mut events = named();
    events.extend([write(1, 0, b"1"), sync_begin(1, 1)]);
    events.push(Event::SyncFailed { handle: (1, 1), number: 1 });
    events.push(write(1, 1, b"2"));
    events.extend(sync(1, 2));
    assert!(is(&survivors(&disk(&events), &Survival::SYNCED), &[("a", b"\x002")]));
}

#[test]
fn unsynced_sectors_survive_independently() {
    let mut events = named();
    events.push(write(1, 0, &[1; 2048]));
    events.extend(sync(1, 1));
    events.push(write(1, 0, &[2; 2048]));
    let disk = disk(&events);
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let survival = Survival { data: Data::Random, seed, ..Survival::SYNCED };
        let content = &survivors(&disk, &survival)[0].1;
        assert_eq!(content.len(), 2048);
        for sector in content.chunks(512) {
            assert!(sector == [1; 512] || sector == [2; 512], "a sector is old or new");
        }
        seen.insert(content.chunks(512).map(|sector| sector[0]).collect::<Vec<u8>>());
    }
    assert_eq!(seen.len(), 16, "every mixture of four sectors occurs");
}

#[test]
fn a_mutant_ignores_the_syncs_that_it_is_told_to() {
    let mut events = named();
    events.push(write(1, 0, b"1"));
    events.extend(sync(1, 1));
    let mut disk = Disk::new(&Image::default()).ignoring_syncs(|path| path == "a");
    events.iter().for_each(|event| disk.apply(event));
    assert!(is(&survivors(&disk, &Survival::SYNCED), &[("a", b"")]));
}
