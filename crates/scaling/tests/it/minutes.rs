//! What happens from minute to minute.

use std::ops::ControlFlow;
use std::sync::Arc;

use futures_util::FutureExt;
use serde_json::{Value, json};
use zenobe_engine::clock::{Clock, ManualClock};
use zenobe_scaling::{TrackingAlarm, Watched};
use zenobe_store::failing::{FailingStore, WriteFailure};
use zenobe_store::intercepting::InterceptingStore;
use zenobe_store::memory::MemoryStore;
use zenobe_store::{Direction, KeyRange, Store};

use crate::world::{MINUTE_MS, START_MS, World, target};

const DAY_MS: u64 = 24 * 60 * MINUTE_MS;
const SUCCESS: &str =
    "Successfully set write capacity units to 20. Change successfully fulfilled by dynamodb.";

#[tokio::test]
async fn load_adds_capacity_and_quiet_removes_it() {
    let world = World::new().await;
    world.create_table(5).await;
    world.register(json!({"MinCapacity": 5, "MaxCapacity": 100})).await;
    let alarms = world.track(json!({})).await["Alarms"].clone();
    let alarm = |position: usize| alarms[position]["AlarmName"].as_str().unwrap().to_owned();

    // Ten units per second are 50 % of 20.
    world.write(600).await;
    world.pass_minutes(1).await;
    assert_eq!(world.units().await, (5, 5));
    world.write(600).await;
    world.pass_minutes(1).await;
    assert_eq!(world.units().await, (5, 20));
    let cause = format!("monitor alarm {} in state ALARM triggered policy half", alarm(0));
    let expected = ["Setting write capacity units to 20.", &cause, "Successful", SUCCESS];
    assert_eq!(world.activities().await, [expected.map(str::to_owned)]);

    // Fifteen quiet minutes, in one step of the clock.
    world.pass_minutes(14).await;
    assert_eq!(world.units().await, (5, 20));
    world.pass_minutes(1).await;
    assert_eq!(world.units().await, (5, 5));
    assert!(alarm(1).starts_with("TargetTracking-table/Orders-AlarmLow-"));
    let newest = world.activities().await.swap_remove(0);
    assert_eq!(newest[0], "Setting write capacity units to 5.");
    assert!(newest[1].contains(&alarm(1)), "{newest:?}");

    // Then it stays at the minimum, which is recorded once.
    world.pass_minutes(30).await;
    let newest = world.activities().await;
    assert_eq!(newest.len(), 3);
    let reason = r#"{"Code":"AlreadyAtMinCapacity","MinCapacity":5}"#;
    assert_eq!(newest[0][2..], ["Failed".to_owned(), reason.to_owned()]);
}

/// Their thresholds move with what is provisioned, as on AWS.
#[tokio::test]
async fn policies_have_alarms_with_thresholds() {
    let world = World::new().await;
    world.create_table(5).await;
    world.register(json!({"MinCapacity": 5, "MaxCapacity": 100})).await;
    assert_eq!(world.policy_alarms().await, []);
    let answered = world.track(json!({})).await["Alarms"].clone();
    let alarms = world.policy_alarms().await;
    let names: Vec<Value> = alarms.iter().map(|alarm| alarm.name.clone().into()).collect();
    let answered: Vec<&Value> =
        answered.as_array().unwrap().iter().map(|alarm| &alarm["AlarmName"]).collect();
    assert_eq!(names.iter().collect::<Vec<_>>(), answered);
    let shape =
        |alarm: &TrackingAlarm| (alarm.watched, alarm.is_high, alarm.periods, alarm.threshold);
    // 50 % of 5 units, and 30 %, in a minute.
    let expected = [
        (Watched::Consumption, true, 2, 150.0),
        (Watched::Consumption, false, 15, 90.0),
        (Watched::Provisioned, true, 3, 5.0),
        (Watched::Provisioned, false, 3, 5.0),
    ];
    assert_eq!(alarms.iter().map(shape).collect::<Vec<_>>(), expected);
    assert!(alarms[0].policy_arn.ends_with(":policyName/half"), "{}", alarms[0].policy_arn);
    let throughput = json!({"ReadCapacityUnits": 5, "WriteCapacityUnits": 10});
    let update = json!({"TableName": "Orders", "ProvisionedThroughput": throughput});
    world.dynamodb("UpdateTable", update).await;
    assert_eq!(world.policy_alarms().await[0].threshold, 300.0);
    let on_demand = json!({"TableName": "Orders", "BillingMode": "PAY_PER_REQUEST"});
    world.dynamodb("UpdateTable", on_demand).await;
    assert_eq!(world.policy_alarms().await, []);
}

#[tokio::test]
async fn an_index_is_scaled_by_itself() {
    let world = World::new().await;
    world.create_table(5).await;
    let index = json!({
        "ServiceNamespace": "dynamodb",
        "ResourceId": "table/Orders/index/by-state",
        "ScalableDimension": "dynamodb:index:WriteCapacityUnits",
        "MinCapacity": 1,
        "MaxCapacity": 100,
    });
    world.done("RegisterScalableTarget", index.clone()).await;
    let mut policy = index;
    policy["PolicyName"] = "half".into();
    policy["PolicyType"] = "TargetTrackingScaling".into();
    let metric = json!({"PredefinedMetricType": "DynamoDBWriteCapacityUtilization"});
    policy["TargetTrackingScalingPolicyConfiguration"] =
        json!({"TargetValue": 50, "PredefinedMetricSpecification": metric});
    world.done("PutScalingPolicy", policy).await;
    for minute in 0..2 {
        for number in 0..300 {
            let id = format!("{minute}-{number}");
            let item = json!({"id": {"S": id}, "state": {"S": "new"}});
            world.dynamodb("PutItem", json!({"TableName": "Orders", "Item": item})).await;
        }
        world.pass_minutes(1).await;
    }
    let table = world.dynamodb("DescribeTable", json!({"TableName": "Orders"})).await;
    let index = &table["Table"]["GlobalSecondaryIndexes"][0]["ProvisionedThroughput"];
    // Five entries per second.
    assert_eq!((&index["WriteCapacityUnits"], world.units().await), (&json!(10), (5, 5)));
}

#[tokio::test]
async fn registering_brings_the_capacity_inside() {
    let world = World::new().await;
    world.create_table(5).await;
    world.register(json!({"MinCapacity": 8, "MaxCapacity": 20})).await;
    assert_eq!(world.units().await, (5, 8));
    world.register(json!({"MinCapacity": 1, "MaxCapacity": 3})).await;
    assert_eq!(world.units().await, (5, 3));
    let causes: Vec<String> =
        world.activities().await.into_iter().map(|[_, cause, ..]| cause).collect();
    assert_eq!(causes.len(), 2);
    assert!(causes.contains(&"minimum capacity was set to 8".to_owned()));
    assert!(causes.contains(&"maximum capacity was set to 3".to_owned()));
}

#[tokio::test]
async fn scheduled_actions_set_limits_and_capacity() {
    let world = World::new().await;
    world.create_table(5).await;
    world.register(json!({"MinCapacity": 1, "MaxCapacity": 10})).await;
    let at = zenobe_engine::clock::iso8601_without_zone(START_MS + 90_000)[..19].to_owned();
    let action = |name: &str, schedule: String, limits| {
        target(
            json!({"ScheduledActionName": name, "Schedule": schedule, "ScalableTargetAction": limits}),
        )
    };
    let up = json!({"MinCapacity": 15, "MaxCapacity": 20});
    world.done("PutScheduledAction", action("up", format!("at({at})"), up)).await;
    world
        .done(
            "PutScheduledAction",
            action("lower", "rate(1 day)".into(), json!({"MaxCapacity": 2})),
        )
        .await;
    world.pass_minutes(1).await;
    assert_eq!(world.units().await, (5, 5));
    world.pass_minutes(1).await;
    assert_eq!(world.units().await, (5, 15));
    let expected = [
        [
            "Setting write capacity units to 15.",
            "minimum capacity was set to 15",
            "Successful",
            "Successfully set write capacity units to 15. Change successfully fulfilled by dynamodb.",
        ],
        [
            "Setting min capacity to 15 and max capacity to 20",
            "scheduled action name up was triggered",
            "Successful",
            "Successfully set min capacity to 15 and max capacity to 20",
        ],
    ];
    assert_eq!(world.activities().await, expected.map(|texts| texts.map(str::to_owned)));
    // It runs once. A maximum below the minimum is refused when the other one runs.
    world.pass_minutes(24 * 60).await;
    let newest = world.activities().await;
    assert_eq!(newest.len(), 3);
    let message = "Failed to set max capacity to 2. Reason: Maximum capacity cannot be less than minimum capacity";
    assert_eq!(newest[0][3], message);
}

#[tokio::test]
async fn suspended_schedules_do_not_run() {
    let world = World::new().await;
    world.create_table(5).await;
    let suspended = json!({"ScheduledScalingSuspended": true});
    world.register(json!({"MinCapacity": 1, "MaxCapacity": 10, "SuspendedState": suspended})).await;
    let limits = json!({"MinCapacity": 9});
    let action = json!({"ScheduledActionName": "a", "Schedule": "rate(5 minutes)", "ScalableTargetAction": limits});
    world.done("PutScheduledAction", target(action)).await;
    world.pass_minutes(20).await;
    assert_eq!((world.units().await, world.activities().await.len()), ((5, 5), 0));
    // What was missed is not made up for.
    let resumed = json!({"ScheduledScalingSuspended": false});
    world.register(json!({"SuspendedState": resumed})).await;
    world.pass_minutes(4).await;
    assert_eq!(world.units().await, (5, 5));
    world.pass_minutes(1).await;
    assert_eq!(world.units().await, (5, 9));
}

#[tokio::test]
async fn a_table_that_can_not_be_changed_fails_the_activity() {
    let world = World::new().await;
    world.create_table(5).await;
    world.register(json!({"MinCapacity": 5, "MaxCapacity": 100})).await;
    world.track(json!({})).await;
    let on_demand = json!({"TableName": "Orders", "BillingMode": "PAY_PER_REQUEST"});
    world.dynamodb("UpdateTable", on_demand).await;
    for _ in 0..4 {
        world.write(600).await;
        world.pass_minutes(1).await;
    }
    // The same failure is not told every minute.
    let activities = world.activities().await;
    let reason = "Failed to set write capacity units to 20. Reason: The billing mode of table Orders is PAY_PER_REQUEST: \
                  it has no capacity to set";
    assert_eq!(activities.len(), 1);
    assert_eq!(activities[0][2..], ["Failed".to_owned(), reason.to_owned()]);

    // A target outlives its table.
    let limits = json!({"MinCapacity": 9});
    let action = json!({"ScheduledActionName": "a", "Schedule": "rate(5 minutes)", "ScalableTargetAction": limits});
    world.done("PutScheduledAction", target(action)).await;
    world.dynamodb("DeleteTable", json!({"TableName": "Orders"})).await;
    world.pass_minutes(5).await;
    let activities = world.activities().await;
    let reason = "Failed to set write capacity units to 9. Reason: Requested resource not found: Table: Orders not found";
    assert_eq!(activities[0][2..], ["Failed".to_owned(), reason.to_owned()]);
    world.done("DeregisterScalableTarget", target(json!({}))).await;
}

/// The account's other tables leave no room.
#[tokio::test]
async fn a_table_is_not_scaled_above_the_capacity_of_its_account() {
    let world = World::new().await;
    world.create_table(5).await;
    world.register(json!({"MinCapacity": 5, "MaxCapacity": 100})).await;
    for (name, units) in [("First", 40_000), ("Second", 39_980)] {
        let definition = json!({
            "TableName": name,
            "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
            "ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": units},
        });
        world.dynamodb("CreateTable", definition).await;
    }
    world.done("PutScheduledAction", target(raise("up", START_MS + 20_000, 16))).await;
    world.pass_minutes(1).await;
    assert_eq!(world.units().await, (5, 5));
    let reason = "Failed to set write capacity units to 16. Reason: The account has 79990 units and \
                  would get 11 more, which is above its maximum: 80000";
    let activities = world.activities().await;
    assert_eq!(activities[0][2..], ["Failed".to_owned(), reason.to_owned()]);
}

#[tokio::test]
async fn decreases_are_limited_by_the_day() {
    let world = World::new().await;
    world.create_table(60).await;
    world.register(json!({"MinCapacity": 1, "MaxCapacity": 100})).await;
    world.track(json!({})).await;
    // Each quarter of an hour is quieter than the one before; the fifth decrease comes too soon.
    for units in [15, 8, 4, 2, 1] {
        for _ in 0..15 {
            world.write(units * 60).await;
            world.pass_minutes(1).await;
        }
    }
    assert_eq!(world.units().await, (60, 4));
    let newest = world.activities().await.swap_remove(0);
    assert_eq!(
        (newest[0].as_str(), newest[2].as_str()),
        ("Setting write capacity units to 2.", "Failed")
    );
    assert!(newest[3].contains("Number of decreases today: 4"), "{newest:?}");
}

/// A clock that nobody moves on purpose, so that its jumps are not trusted.
struct WallClock(Arc<ManualClock>);

impl Clock for WallClock {
    fn now_ms(&self) -> u64 {
        self.0.now_ms()
    }
}

async fn world_that_distrusts_jumps() -> (World, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(START_MS));
    let (store, shown) = (Arc::new(MemoryStore::new()), Arc::new(WallClock(clock.clone())));
    let world = World::of_account("000000000000", store, clock.clone(), shown, 7).await;
    (world, clock)
}

#[tokio::test]
async fn a_clock_that_has_jumped_deletes_no_activity() {
    let (world, clock) = world_that_distrusts_jumps().await;
    world.create_table(5).await;
    world.register(json!({"MinCapacity": 8, "MaxCapacity": 20})).await;
    // To a full hour, at which old activities are deleted.
    world.pass_minutes(100 * 24 * 60 + 12).await;
    clock.set_ms(START_MS + MINUTE_MS);
    world.scaling.run_due().await.unwrap();
    assert_eq!(world.activities().await.len(), 1);
}

#[tokio::test]
async fn a_clock_that_has_jumped_runs_no_scheduled_action_until_it_is_confirmed() {
    let (world, clock) = world_that_distrusts_jumps().await;
    world.create_table(5).await;
    world.register(json!({"MinCapacity": 1, "MaxCapacity": 20})).await;
    let later_ms = START_MS + 30 * DAY_MS;
    world.done("PutScheduledAction", target(raise("later", later_ms, 15))).await;
    clock.set_ms(START_MS + 100 * DAY_MS);
    world.scaling.run_due().await.unwrap();
    assert_eq!(world.units().await, (5, 5), "only the clock says so");
    clock.set_ms(START_MS + MINUTE_MS);
    world.scaling.run_due().await.unwrap();
    assert_eq!(world.units().await, (5, 5), "it was wrong");
    clock.set_ms(later_ms + MINUTE_MS);
    world.engine.confirm_clock().await.unwrap();
    world.scaling.run_due().await.unwrap();
    assert_eq!(world.units().await, (5, 15), "an operator says so too");
}

/// The minutes that were jumped over had no requests, and must not count as quiet ones.
#[tokio::test]
async fn a_clock_that_has_jumped_changes_no_capacity() {
    let (world, clock) = world_that_distrusts_jumps().await;
    world.create_table(20).await;
    world.register(json!({"MinCapacity": 5, "MaxCapacity": 100})).await;
    world.track(json!({})).await;
    let before = world.units().await;
    clock.set_ms(START_MS + 100 * DAY_MS);
    world.scaling.run_due().await.unwrap();
    assert_eq!(world.units().await, before, "only the clock says so");
    // Now an operator says so too, which is an error. Later the clock is set right.
    world.engine.confirm_clock().await.unwrap();
    world.pass_minutes(20).await;
    assert_eq!(world.units().await.1, 5, "quiet minutes");
    clock.set_ms(START_MS + MINUTE_MS);
    world.engine.confirm_clock().await.unwrap();
    world.scaling.run_due().await.unwrap();
    for _ in 0..3 {
        world.write(3_000).await;
        world.pass_minutes(1).await;
    }
    assert_eq!(world.units().await.1, 100, "a busy table is scaled at once");
}

/// After a jump that was confirmed, or that was too short to be noticed.
#[tokio::test]
async fn a_clock_that_has_jumped_ahead_and_back_delays_no_scheduled_action() {
    let (world, clock) = world_that_distrusts_jumps().await;
    world.create_table(5).await;
    world.register(json!({"MinCapacity": 1, "MaxCapacity": 20})).await;
    world.done("PutScheduledAction", target(raise("first", START_MS + 30_000, 15))).await;
    clock.advance_ms(100 * DAY_MS);
    world.engine.confirm_clock().await.unwrap();
    world.scaling.run_due().await.unwrap();
    assert_eq!(world.units().await, (5, 15));
    clock.set_ms(START_MS + MINUTE_MS);
    world.scaling.run_due().await.unwrap();
    world.done("PutScheduledAction", target(raise("second", START_MS + 90_000, 17))).await;
    world.pass_minutes(1).await;
    assert_eq!(world.units().await, (5, 17));
}

/// An action that raises the minimum.
fn raise(name: &str, at_ms: u64, min: u64) -> Value {
    let at = zenobe_engine::clock::iso8601_without_zone(at_ms)[..19].to_owned();
    json!({
        "ScheduledActionName": name,
        "Schedule": format!("at({at})"),
        "ScalableTargetAction": {"MinCapacity": min},
    })
}

/// The account is an access key where credentials choose the namespace.
#[tokio::test]
async fn targets_of_an_access_key_can_be_tagged() {
    let clock = Arc::new(ManualClock::new(START_MS));
    let store = Arc::new(MemoryStore::new());
    let world = World::of_account("local", store, clock.clone(), clock, 7).await;
    world.create_table(5).await;
    let registered = world.register(json!({"MinCapacity": 1, "MaxCapacity": 20})).await;
    let arn = &registered["ScalableTargetARN"];
    world.done("TagResource", json!({"ResourceARN": arn, "Tags": {"a": "b"}})).await;
    let tags = world.done("ListTagsForResource", json!({"ResourceARN": arn})).await;
    assert_eq!(tags, json!({"Tags": {"a": "b"}}));
    let foreign = arn.as_str().unwrap().replace(":local:", ":other:");
    let body = json!({"ResourceARN": foreign}).to_string();
    assert_eq!(world.scaling("ListTagsForResource", &body).await.0, 400);
}

#[tokio::test]
async fn a_scheduled_action_that_failed_is_run_again() {
    let clock = Arc::new(ManualClock::new(START_MS));
    let store = Arc::new(FailingStore::new(Arc::new(MemoryStore::new())));
    let world = World::on(store.clone(), clock, 7).await;
    world.create_table(5).await;
    world.register(json!({"MinCapacity": 1, "MaxCapacity": 20})).await;
    for (name, after_ms, units) in [("first", 20_000, 15), ("second", 40_000, 17)] {
        world.done("PutScheduledAction", target(raise(name, START_MS + after_ms, units))).await;
    }
    // The limits are set, but the table can't be changed.
    let error = zenobe_store::Error::Unavailable { detail: "away".into() };
    store.set(WriteFailure::RefusedAfter { writes: 1, error });
    world.clock.advance_ms(MINUTE_MS);
    world.scaling.run_due().await.unwrap_err();
    store.set(WriteFailure::None);
    assert_eq!((world.units().await, world.activities().await.len()), ((5, 5), 0));
    world.scaling.run_due().await.unwrap();
    assert_eq!(world.units().await, (5, 17));
    // Each action records its limits and the capacity.
    assert_eq!(world.activities().await.len(), 4);
}

/// Has another world deregister the target right before each write to its row.
fn deregister_before_writes(store: &InterceptingStore, other: World) {
    let other = Arc::new(other);
    store.intercept(move |set| {
        let is_orders = |key: &[u8]| key.windows(6).any(|part| part == b"Orders");
        let other = Arc::clone(&other);
        let deregister = async move {
            let request = target(json!({})).to_string();
            // It is there only the first time.
            other.scaling("DeregisterScalableTarget", &request).await;
        };
        set.keys.iter().any(|key| is_orders(key)).then(|| deregister.boxed())
    });
}

#[tokio::test]
async fn a_target_that_was_deregistered_meanwhile_is_left_alone() {
    let clock = Arc::new(ManualClock::new(START_MS));
    let below: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let store = Arc::new(InterceptingStore::new(Arc::clone(&below)));
    let world = World::on(store.clone(), clock.clone(), 7).await;
    world.create_table(5).await;
    world.register(json!({"MinCapacity": 1, "MaxCapacity": 20})).await;
    world.done("PutScheduledAction", target(raise("up", START_MS + 20_000, 15))).await;
    deregister_before_writes(&store, World::on(Arc::clone(&below), clock, 8).await);
    world.pass_minutes(1).await;
    let registered =
        world.done("DescribeScalableTargets", json!({"ServiceNamespace": "dynamodb"})).await;
    assert_eq!(registered["ScalableTargets"], json!([]));
    assert_eq!((world.units().await, world.activities().await.len()), ((5, 5), 0));
    let mut rows = 0;
    let mut visit = |key: &[u8], _: &[u8]| {
        rows += usize::from(key.windows(12).any(|part| part == b"table/Orders"));
        ControlFlow::Continue(())
    };
    below.scan(KeyRange::all(), Direction::Forward, &mut visit).await.unwrap();
    assert_eq!(rows, 0, "nothing of the target is left");
}
