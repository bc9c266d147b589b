//! Damage that only shows when somebody reads: it is refused, and named.

use std::sync::Arc;

use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload};
use zenobe_backup::Repository;
use zenobe_backup::restore_plan::RestorePoint;

use crate::faulty_store::FaultyStore;
use crate::list_source::{ListSource, repository, restored, until_shipped};

const PREFIX: &str = "some/prefix/";

/// A repository with a snapshot and a few segments.
async fn shipped() -> (Arc<FaultyStore>, Repository, ListSource) {
    let (store, source) = (Arc::new(FaultyStore::default()), ListSource::new("damage"));
    let repository = repository(&store);
    (0..25).for_each(|number| source.commit(&format!("before {number}")));
    let (status, shipping) = source.ship(&repository);
    until_shipped(&status).await;
    (0..20).for_each(|number| source.commit(&format!("{number} {}", "x".repeat(200))));
    source.close();
    shipping.await.unwrap();
    assert_eq!(restored(&repository, &RestorePoint::Latest).await.unwrap(), source.all_texts());
    (store, repository, source)
}

async fn keys(store: &FaultyStore, part: &str) -> Vec<String> {
    use futures_util::TryStreamExt;
    let listed: Vec<_> = store.list(None).try_collect().await.unwrap();
    let mut keys: Vec<String> = listed
        .into_iter()
        .map(|meta| meta.location.to_string())
        .filter(|key| key.contains(part))
        .collect();
    keys.sort();
    keys
}

async fn content(store: &FaultyStore, key: &str) -> Vec<u8> {
    store.get(&Path::from(key)).await.unwrap().bytes().await.unwrap().to_vec()
}

async fn put(store: &FaultyStore, key: &str, bytes: Vec<u8>) {
    store.put(&Path::from(key), PutPayload::from(bytes)).await.unwrap();
}

/// A restore is refused with a text that contains these.
async fn refused(repository: &Repository, texts: &[&str]) {
    let error = restored(repository, &RestorePoint::Latest).await.unwrap_err().to_string();
    for text in texts {
        assert!(error.contains(text), "{error} lacks {text}");
    }
}

#[tokio::test]
async fn a_file_that_is_damaged_or_missing_is_named() {
    let (store, repository, _) = shipped().await;
    let key = keys(&store, "files/rocksdb/000000.sst").await[0].clone();
    let name = key.strip_prefix(PREFIX).unwrap();
    let whole = content(&store, &key).await;
    let mut altered = whole.clone();
    altered[3] ^= 1;
    put(&store, &key, altered).await;
    refused(&repository, &[name, "SHA-256"]).await;
    put(&store, &key, whole[..whole.len() - 1].to_vec()).await;
    refused(&repository, &[name]).await;
    store.delete(&Path::from(key.as_str())).await.unwrap();
    refused(&repository, &[name, "missing"]).await;
}

#[tokio::test]
async fn a_segment_that_is_damaged_or_missing_is_named() {
    let (store, repository, source) = shipped().await;
    let all = keys(&store, "segments/").await;
    let segments: Vec<&String> = all.iter().filter(|key| !key.ends_with("head")).collect();
    assert!(segments.len() >= 4, "{segments:?}");
    let at = segments.len() - 2;
    let (key, next) = (segments[at], segments[at + 1]);
    let whole = content(&store, key).await;

    let mut altered = whole.clone();
    altered[60] ^= 1;
    put(&store, key, altered).await;
    refused(&repository, &[key.strip_prefix(PREFIX).unwrap(), "SHA-256"]).await;

    // Another one in its place.
    put(&store, key, content(&store, next).await).await;
    refused(&repository, &[key.strip_prefix(PREFIX).unwrap()]).await;

    store.delete(&Path::from(key.as_str())).await.unwrap();
    let number = key.rsplit('/').next().unwrap()[..12].parse::<u64>().unwrap();
    refused(
        &repository,
        &[next.strip_prefix(PREFIX).unwrap(), &format!("segment {number} before it is missing")],
    )
    .await;

    // The same one twice, under another name.
    put(&store, key, whole.clone()).await;
    let (generation, name) = key.rsplit_once('/').unwrap();
    let twice = format!("{generation}/{}", name.replace("-0", "-1"));
    put(&store, &twice, whole.clone()).await;
    refused(&repository, &["there is another segment"]).await;
    store.delete(&Path::from(twice.as_str())).await.unwrap();
    assert_eq!(restored(&repository, &RestorePoint::Latest).await.unwrap(), source.all_texts());

    // The last one is missed too, because the head knows of it.
    store.delete(&Path::from(next.as_str())).await.unwrap();
    refused(&repository, &["head", "was stored"]).await;
}

#[tokio::test]
async fn a_manifest_that_is_damaged_is_named_and_one_that_is_missing_does_not_count() {
    let (store, repository, _) = shipped().await;
    let key = keys(&store, "manifest").await[0].clone();
    let whole = content(&store, &key).await;
    put(&store, &key, whole[..whole.len() / 2].to_vec()).await;
    refused(&repository, &[key.strip_prefix(PREFIX).unwrap()]).await;
    store.delete(&Path::from(key.as_str())).await.unwrap();
    refused(&repository, &["there is no backup at s3://b/some/prefix"]).await;
}
