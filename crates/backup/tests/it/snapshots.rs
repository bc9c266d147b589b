use std::sync::Arc;

use zenobe_backup::manifest::Manifest;
use zenobe_backup::stored_files::{self, FileProgress, Subject};
use zenobe_backup::{BackupError, CpuShare, Repository, fetch, new_id};
use zenobe_store::Stamp;
use zenobe_testing::TemporaryDirectory;

use crate::faulty_store::{Fault, FaultyStore};
use crate::list_source::{DATABASE, repository};

async fn store(
    repository: &Repository,
    directory: &TemporaryDirectory,
    at_ms: u64,
) -> (Manifest, FileProgress) {
    let id = new_id(at_ms);
    let earlier = stored_files::begin(repository, &id, DATABASE).await.unwrap();
    let at = Stamp::first_of_ms(at_ms);
    let subject =
        Subject { id, generation: None, database: DATABASE, sequence: 0, at, content: None };
    let last = std::sync::Mutex::new(FileProgress::default());
    let observe = |progress| *last.lock().unwrap() = progress;
    let stored = stored_files::store(
        repository,
        directory.path(),
        subject,
        &earlier,
        &mut CpuShare::full(),
        &observe,
    )
    .await;
    (stored.unwrap(), *last.lock().unwrap())
}

fn write(directory: &TemporaryDirectory, name: &str, bytes: &[u8]) {
    std::fs::write(directory.path().join(name), bytes).unwrap();
}

async fn check(repository: &Repository, manifest: &Manifest, expected: &[(&str, &[u8])]) {
    let target = TemporaryDirectory::new("fetched");
    fetch::files(repository, manifest, target.path(), &[], &|_| {}).await.unwrap();
    for (name, bytes) in expected {
        assert!(std::fs::read(target.path().join(name)).unwrap() == *bytes, "{name} differs");
    }
    assert_eq!(std::fs::read_dir(target.path()).unwrap().count(), expected.len());
}

#[tokio::test]
async fn only_new_files_are_stored() {
    let objects = Arc::new(FaultyStore::default());
    let repository = repository(&objects);
    let directory = TemporaryDirectory::new("files");
    // More than a part, and a multiple of it.
    let large = vec![5; 16 << 20];
    write(&directory, "1.sst", &large);
    write(&directory, "2.sst", b"two");
    let (first, progress) = store(&repository, &directory, 1_000).await;
    assert_eq!((progress.files, progress.files_known), (2, 0));
    check(&repository, &first, &[("1.sst", &large), ("2.sst", b"two")]).await;

    objects.take_puts();
    write(&directory, "3.sst", b"three");
    // After a restore, a number may be given to another file of the same size.
    write(&directory, "2.sst", b"owt");
    let (second, progress) = store(&repository, &directory, 2_000).await;
    assert_eq!((progress.files, progress.files_known, progress.bytes_known), (3, 1, 16 << 20));
    let stored: Vec<String> = objects.take_puts();
    let files: Vec<&str> =
        stored.iter().filter_map(|key| key.split_once("files/")).map(|(_, name)| name).collect();
    assert_eq!(files, ["2.sst", "3.sst"]);
    assert!(stored.last().unwrap().ends_with("manifest"), "{stored:?}");
    check(&repository, &second, &[("1.sst", &large), ("2.sst", b"owt"), ("3.sst", b"three")]).await;
    check(&repository, &first, &[("1.sst", &large), ("2.sst", b"two")]).await;
}

/// Whatever the object store says of an upload in parts, a file that it does not hold is stored again.
#[tokio::test]
async fn large_files_that_were_stored_altered_are_stored_again() {
    for fault in [Fault::StoresHalf, Fault::StoresOther, Fault::StoresNothing, Fault::Away] {
        let objects = Arc::new(FaultyStore::default());
        let repository = repository(&objects);
        let directory = TemporaryDirectory::new("altered");
        let large: Vec<u8> = (0..17_u32 << 20).map(|at| (at % 251) as u8).collect();
        write(&directory, "1.sst", &large);
        objects.fail("files/", fault, 2);
        let (manifest, _) = store(&repository, &directory, 1_000).await;
        assert!(objects.is_healed(), "{fault:?}");
        check(&repository, &manifest, &[("1.sst", &large)]).await;
    }
}

#[tokio::test]
async fn another_database_is_refused() {
    let repository = repository(&Arc::default());
    let directory = TemporaryDirectory::new("other");
    write(&directory, "1.sst", b"one");
    store(&repository, &directory, 1_000).await;
    let refused = stored_files::earlier(&repository, DATABASE + 1).await.unwrap_err();
    assert!(matches!(refused, BackupError::OtherDatabase { .. }), "{refused}");
}

/// A restore that was cut off keeps what is whole, and removes what does not belong there.
#[tokio::test]
async fn fetching_goes_on_where_it_was_cut_off() {
    let repository = repository(&Arc::default());
    let directory = TemporaryDirectory::new("source");
    for name in ["1.sst", "2.sst", "3.sst"] {
        write(&directory, name, name.as_bytes());
    }
    let (manifest, _) = store(&repository, &directory, 1_000).await;
    let target = TemporaryDirectory::new("target");
    write(&target, "1.sst", b"1.sst");
    write(&target, "2.sst", b"X.sst");
    write(&target, "3.sst.part", b"3");
    write(&target, "MARK", b"");
    let last = std::sync::Mutex::new(FileProgress::default());
    let observe = |progress| *last.lock().unwrap() = progress;
    fetch::files(&repository, &manifest, target.path(), &["MARK"], &observe).await.unwrap();
    assert_eq!(last.lock().unwrap().files_known, 1);
    for name in ["1.sst", "2.sst", "3.sst"] {
        assert_eq!(std::fs::read(target.path().join(name)).unwrap(), name.as_bytes());
    }
    assert_eq!(std::fs::read_dir(target.path()).unwrap().count(), 4);
}
