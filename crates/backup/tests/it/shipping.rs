use std::sync::Arc;

use zenobe_backup::BackupError;
use zenobe_backup::restore_plan::{RestorePoint, windows};

use crate::faulty_store::{Fault, FaultyStore};
use crate::list_source::{
    ListSource, WAITING_BYTES_MAX, repository, restored, until, until_shipped,
};

#[tokio::test]
async fn every_state_that_was_shipped_can_be_restored() {
    let (store, source) = (Arc::new(FaultyStore::default()), ListSource::new("states"));
    let repository = repository(&store);
    (0..25).for_each(|number| source.commit(&format!("before {number}")));
    let (status, shipping) = source.ship(&repository);
    until_shipped(&status).await;
    assert_eq!(restored(&repository, &RestorePoint::Latest).await.unwrap(), source.all_texts());
    let mut moments = Vec::new();
    for number in 0..30 {
        source.commit(&format!("after {number}"));
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        moments.push(source.groups().last().unwrap().stamp);
    }
    source.close();
    shipping.await.unwrap();
    assert!(!status.get().is_running);
    assert_eq!(restored(&repository, &RestorePoint::Latest).await.unwrap(), source.all_texts());
    for moment in moments.iter().step_by(7) {
        let at = RestorePoint::Time(moment.at_ms());
        let expected = source.texts(zenobe_store::Stamp::last_of_ms(moment.at_ms()));
        assert_eq!(restored(&repository, &at).await.unwrap(), expected);
    }
    let known = windows(&repository).await.unwrap();
    assert_eq!(known.len(), 1, "{known:?}");
    let (begin, end) = known[0];
    for outside in [begin.at_ms() - 1, end.at_ms() + 1] {
        let refused = restored(&repository, &RestorePoint::Time(outside)).await.unwrap_err();
        assert!(matches!(refused, BackupError::NotCovered { .. }), "{refused}");
    }
}

/// Whatever the object store says, what it does not hold is stored again.
#[tokio::test]
async fn an_object_store_that_lies_is_asked_again() {
    for fault in [
        Fault::StoresHalf,
        Fault::StoresOther,
        Fault::StoresNothing,
        Fault::Away,
        Fault::ReturnsHalf,
    ] {
        let (store, source) = (Arc::new(FaultyStore::default()), ListSource::new("lies"));
        let repository = repository(&store);
        (0..12).for_each(|number| source.commit(&format!("before {number}")));
        for part in ["started", "files/", "manifest", "segments/"] {
            store.fail(part, fault, 2);
        }
        let (status, shipping) = source.ship(&repository);
        until_shipped(&status).await;
        (0..5).for_each(|number| source.commit(&format!("after {number}")));
        source.close();
        shipping.await.unwrap();
        assert_eq!(
            restored(&repository, &RestorePoint::Latest).await.unwrap(),
            source.all_texts(),
            "{fault:?}"
        );
    }
}

/// Groups wait for a store that is away, up to a bound. Then a new generation begins, and nothing is missing from it.
#[tokio::test]
async fn a_store_that_was_away_for_long_gets_a_new_generation() {
    let (store, source) = (Arc::new(FaultyStore::default()), ListSource::new("away"));
    let repository = repository(&store);
    source.commit("first");
    let (status, shipping) = source.ship(&repository);
    until_shipped(&status).await;
    let first = status.get().generation;

    // Briefly: the generation goes on.
    store.fail("segments/", Fault::Away, 5);
    source.commit("waits");
    until(|| store.is_healed()).await;
    until_shipped(&status).await;
    assert_eq!((status.get().generation, status.get().problem), (first.clone(), None));

    // For longer than groups can wait.
    store.fail("", Fault::Away, usize::MAX);
    source.commit("on its way");
    until(|| status.get().problem.is_some()).await;
    (0..30).for_each(|_| source.commit(&"x".repeat(WAITING_BYTES_MAX / 20)));
    store.heal();
    until(|| status.get().generation != first).await;
    source.commit("after it");
    until_shipped(&status).await;
    assert_eq!((status.get().gaps, status.get().generations), (1, 2));
    source.close();
    shipping.await.unwrap();
    assert_eq!(restored(&repository, &RestorePoint::Latest).await.unwrap(), source.all_texts());
    assert_eq!(windows(&repository).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_restarted_server_goes_on_with_a_new_generation() {
    let (store, source) = (Arc::new(FaultyStore::default()), ListSource::new("restarts"));
    let repository = repository(&store);
    for round in 0..3 {
        (0..12).for_each(|number| source.commit(&format!("{round}/{number}")));
        let (status, shipping) = source.ship(&repository);
        until_shipped(&status).await;
        source.commit(&format!("{round}/shipped"));
        source.close();
        shipping.await.unwrap();
        assert_eq!(restored(&repository, &RestorePoint::Latest).await.unwrap(), source.all_texts());
    }
    // A time of the first round is still there.
    let at = source.groups()[12].stamp;
    let expected = source.texts(zenobe_store::Stamp::last_of_ms(at.at_ms()));
    assert_eq!(restored(&repository, &RestorePoint::Time(at.at_ms())).await.unwrap(), expected);
}
