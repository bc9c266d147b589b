//! Streams, encryption, class and time to live.

use zenobe_engine::Limits;
use zenobe_engine::command::*;
use zenobe_engine::error::{Error, LimitError, Result, TimeToLiveError, UpdateTableError};
use zenobe_engine::schema::*;

use super::harness::*;

#[tokio::test]
async fn every_enabling_makes_a_new_stream() {
    let harness = Harness::new().await;
    harness.create(create("t")).await;
    let change = async |change| harness.update(|request| request.stream = Some(change)).await;
    let enable = StreamChange::Enable(StreamViewType::NewImage);
    check_refused(change(StreamChange::Disable).await, UpdateTableError::NoStreamToDisable);
    let update = change(enable).await.unwrap();
    assert_eq!(update.before.definition.stream, None);
    let first = update.after.definition.stream.clone().unwrap();
    assert_eq!(first.label, "2026-10-09T05:53:25.330");
    let other_view = StreamChange::Enable(StreamViewType::KeysOnly);
    check_refused(change(other_view).await, UpdateTableError::StreamAlreadyEnabled);
    change(StreamChange::Disable).await.unwrap();
    let disabled = harness.definition().await;
    assert_eq!(
        (disabled.stream.as_ref(), &disabled.latest_stream_label),
        (None, &Some(first.label))
    );
    // The clock stands still, but the label is new.
    change(other_view).await.unwrap();
    let second = harness.definition().await.stream.clone().unwrap();
    assert_eq!(second.label, "2026-10-09T05:53:25.331");
    assert_eq!(second.view_type, StreamViewType::KeysOnly);
}

#[tokio::test]
async fn encryption_changes_only_when_it_changes() {
    let harness = Harness::new().await;
    harness.create(create("t")).await;
    let change = async |change: &EncryptionChange| {
        harness.update(|request| request.encryption = Some(change.clone())).await
    };
    let customer = EncryptionChange::Kms(KmsKey::Customer("arn:aws:kms:r:a:key/k".into()));
    let managed = EncryptionChange::Kms(KmsKey::AwsManaged);
    check_refused(
        change(&EncryptionChange::Default).await,
        UpdateTableError::AlreadyEncryptedByDefault,
    );
    change(&managed).await.unwrap();
    let managed_arn = harness.definition().await.kms_key_arn.clone().unwrap();
    assert!(managed_arn.starts_with("arn:aws:kms:eu-west-1:000000000000:key/"), "{managed_arn}");
    check_refused(change(&managed).await, UpdateTableError::AlreadyEncryptedWithKey);
    change(&customer).await.unwrap();
    check_refused(change(&customer).await, UpdateTableError::AlreadyEncryptedWithKey);
    change(&managed).await.unwrap();
    assert_eq!(harness.definition().await.kms_key_arn, Some(managed_arn));
    change(&EncryptionChange::Default).await.unwrap();
    assert_eq!(harness.definition().await.kms_key_arn, None);
}

#[tokio::test]
async fn the_class_changes_twice_in_thirty_days() {
    let harness = Harness::new().await;
    harness.create(create("t")).await;
    let change = async |class| harness.update(|request| request.table_class = Some(class)).await;
    let (standard, infrequent) = (TableClass::Standard, TableClass::StandardInfrequentAccess);
    change(infrequent).await.unwrap();
    harness.clock.advance_ms(DAY_MS);
    change(standard).await.unwrap();
    change(standard).await.unwrap();
    assert_eq!(harness.definition().await.table_class, Some((standard, Some(START_MS + DAY_MS))));
    let limited = |result| matches!(result, Err(Error::Limit(LimitError::TableClassChanges)));
    assert!(limited(change(infrequent).await));
    harness.clock.advance_ms(29 * DAY_MS - 1);
    assert!(limited(change(infrequent).await));
    harness.clock.advance_ms(1);
    change(infrequent).await.unwrap();
    assert!(limited(change(standard).await));
}

#[tokio::test]
async fn time_to_live_is_set_once_per_interval() {
    let harness = Harness::new().await;
    harness.create(create("t")).await;
    let set = async |enabled, attribute: &str| {
        let (table, attribute) = (name("t"), attribute.to_owned());
        harness.engine.update_time_to_live(UpdateTimeToLive { table, enabled, attribute }).await
    };
    let check = |result: Result<()>, expected: TimeToLiveError| match result {
        Err(Error::TimeToLive(error)) => assert_eq!(error, expected),
        other => panic!("{other:?}"),
    };
    let shown = async || harness.engine.describe_time_to_live(&name("t")).await.unwrap();
    let other = || TimeToLiveError::OtherAttribute { current: "expires".into() };

    assert_eq!(shown().await, None);
    check(set(false, "expires").await, TimeToLiveError::AlreadyDisabled);
    set(true, "expires").await.unwrap();
    assert_eq!(shown().await.as_deref(), Some("expires"));
    // Faults that don't depend on time are reported before a change that comes too early.
    check(set(true, "expires").await, TimeToLiveError::AlreadyEnabled);
    check(set(true, "until").await, other());
    check(set(false, "until").await, other());
    check(set(false, "expires").await, TimeToLiveError::ChangedTooOften);
    let interval_ms = Limits::default().time_to_live_change_interval_ms;
    harness.clock.advance_ms(interval_ms - 1);
    check(set(false, "expires").await, TimeToLiveError::ChangedTooOften);
    harness.clock.advance_ms(1);
    set(false, "expires").await.unwrap();
    assert_eq!(shown().await, None);
    check(set(true, "until").await, TimeToLiveError::ChangedTooOften);
    harness.clock.advance_ms(interval_ms);
    set(true, "until").await.unwrap();
    assert_eq!(shown().await.as_deref(), Some("until"));
}

#[tokio::test]
async fn a_rejected_update_changes_nothing() {
    let harness = Harness::new().await;
    harness.create(create("t")).await;
    let before = harness.definition().await;
    let refused = harness
        .update(|request| {
            request.deletion_protection = Some(true);
            request.stream = Some(StreamChange::Enable(StreamViewType::NewImage));
            delete_index(request, "missing");
        })
        .await;
    check_refused(refused, UpdateTableError::IndexMissing { index: "missing".into() });
    assert_eq!(harness.definition().await, before);
}

#[tokio::test]
async fn an_update_without_effect_is_not_a_new_version() {
    let harness = Harness::new().await;
    harness.create(create("t")).await;
    let before = harness.definition().await;
    let update = harness
        .update(|request| request.billing_mode = Some(BillingMode::PayPerRequest))
        .await
        .unwrap();
    assert_eq!(update.after.definition, before);
    harness.engine.untag_resource(&name("t"), &["missing".to_owned()]).await.unwrap();
    assert_eq!(harness.definition().await, before);
}
