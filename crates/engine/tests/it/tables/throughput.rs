//! Billing modes and capacity.

use zenobe_engine::command::*;
use zenobe_engine::error::{Error, UpdateTableError};
use zenobe_engine::schema::*;

use super::harness::*;

#[tokio::test]
async fn tables_start_warm() {
    let harness = Harness::new().await;
    let warm = |it: &Throughput| (it.warm_read_units, it.warm_write_units);
    let on_demand = harness.create(create("on-demand")).await.definition;
    assert_eq!(warm(&on_demand.throughput), (12_000, 4_000));
    let mut provisioned = create_provisioned(7, 3);
    provisioned.throughput.warm_read_units = Some(100);
    provisioned.global_indexes = vec![index("i", "owner", units(5, 6))];
    let provisioned = harness.create(provisioned).await.definition;
    assert_eq!(warm(&provisioned.throughput), (100, 3));
    assert_eq!(warm(&provisioned.index("i").unwrap().throughput), (5, 6));
}

#[tokio::test]
async fn capacity_has_to_fit_the_billing_mode() {
    let harness = Harness::new().await;
    let check_create = async |request: CreateTable, expected: UpdateTableError| {
        check_refused(harness.engine.create_table(request).await, expected);
    };
    check_create(
        CreateTable { throughput: units(1, 1), ..create("t") },
        UpdateTableError::ThroughputOnDemand,
    )
    .await;
    check_create(
        CreateTable { throughput: ThroughputSettings::default(), ..create_provisioned(1, 1) },
        UpdateTableError::ThroughputRequired,
    )
    .await;
    check_create(
        CreateTable {
            global_indexes: vec![index("i", "owner", ThroughputSettings::default())],
            ..create_provisioned(1, 1)
        },
        UpdateTableError::IndexThroughputRequired { index: "i".into() },
    )
    .await;

    harness.create(create("t")).await;
    let refused = harness.update(|request| request.throughput = units(1, 1)).await;
    check_refused(refused, UpdateTableError::ThroughputOnDemand);
}

#[tokio::test]
async fn a_change_of_units_is_recorded() {
    let harness = Harness::new().await;
    harness.create(create_provisioned(10, 10)).await;
    let set = async |read, write| {
        harness.clock.advance_ms(1);
        harness.update(|request| request.throughput = units(read, write)).await
    };
    check_refused(
        set(10, 10).await,
        UpdateTableError::ThroughputUnchanged { index: None, read: 10, write: 10 },
    );
    let update = set(20, 10).await.unwrap();
    assert_eq!(update.before.definition.throughput.read_units, 10);
    let raised = &update.after.definition.throughput;
    assert_eq!((raised.read_units, raised.last_increase_ms), (20, Some(START_MS + 2)));
    assert_eq!((raised.last_decrease_ms, raised.decreases_today), (None, 0));
    set(5, 5).await.unwrap();
    // Raising one and lowering the other in one call counts as both.
    set(4, 6).await.unwrap();
    let throughput = harness.definition().await.throughput.clone();
    assert_eq!(throughput.last_increase_ms, Some(START_MS + 4));
    assert_eq!((throughput.last_decrease_ms, throughput.decreases_today), (Some(START_MS + 4), 2));
    assert_eq!((throughput.warm_read_units, throughput.warm_write_units), (20, 10));
}

#[tokio::test]
async fn four_decreases_a_day_and_then_one_an_hour() {
    let harness = Harness::new().await;
    let day_start_ms = START_MS / DAY_MS * DAY_MS;
    harness.clock.set_ms(day_start_ms);
    harness.create(create_provisioned(100, 100)).await;
    let decrease = async |to| harness.update(|request| request.throughput = units(to, to)).await;
    for to in [90, 80, 70, 60] {
        decrease(to).await.unwrap();
    }
    let too_many = |decreases_today, last_decrease_ms, next_ms| {
        UpdateTableError::TooManyDecreases { decreases_today, last_decrease_ms, next_ms }
    };
    harness.clock.advance_ms(HOUR_MS - 1);
    check_refused(decrease(50).await, too_many(4, day_start_ms, day_start_ms + HOUR_MS));
    // Increases are always free.
    decrease(200).await.unwrap();
    harness.clock.advance_ms(1);
    decrease(50).await.unwrap();
    let last_ms = day_start_ms + HOUR_MS;
    check_refused(decrease(40).await, too_many(5, last_ms, last_ms + HOUR_MS));
    assert_eq!(harness.definition().await.throughput.decreases_today, 5);
    // Late in the day, the next day starts before the hour is over.
    let late_ms = day_start_ms + DAY_MS - 1_000;
    harness.clock.set_ms(late_ms);
    decrease(40).await.unwrap();
    check_refused(decrease(30).await, too_many(6, late_ms, day_start_ms + DAY_MS));
    harness.clock.set_ms(day_start_ms + DAY_MS);
    assert_eq!(harness.definition().await.throughput.decreases_today, 0);
    decrease(30).await.unwrap();
    assert_eq!(harness.definition().await.throughput.decreases_today, 1);
}

/// Four at once, and one in each of the hours after the first.
#[tokio::test]
async fn a_day_has_27_decreases_however_often_one_tries() {
    const QUARTER_MS: u64 = HOUR_MS / 4;
    let harness = Harness::new().await;
    let day_start_ms = START_MS / DAY_MS * DAY_MS;
    harness.clock.set_ms(day_start_ms);
    harness.create(create_provisioned(100, 100)).await;
    let mut passed_in = Vec::new();
    for quarter in 0..DAY_MS / QUARTER_MS {
        harness.clock.set_ms(day_start_ms + quarter * QUARTER_MS);
        loop {
            let to = 99 - passed_in.len() as u64;
            match harness.update(|request| request.throughput = units(to, to)).await {
                Ok(_) => passed_in.push(quarter),
                Err(Error::UpdateTable(UpdateTableError::TooManyDecreases { .. })) => break,
                Err(error) => panic!("{error}"),
            }
        }
    }
    let hourly = (1..24).map(|hour| 4 * hour);
    assert_eq!(passed_in, [0; 4].into_iter().chain(hourly).collect::<Vec<_>>());
    assert_eq!(passed_in.len(), 27);
    assert_eq!(harness.definition().await.throughput.decreases_today, 27);
}

#[tokio::test]
async fn indexes_have_budgets_of_their_own() {
    let harness = Harness::new().await;
    harness
        .create(CreateTable {
            global_indexes: vec![index("i", "owner", units(100, 100))],
            ..create_provisioned(100, 100)
        })
        .await;
    for to in [90, 80, 70, 60] {
        harness.update(|request| update_index(request, "i", units(to, to))).await.unwrap();
    }
    let both = harness
        .update(|request| {
            request.throughput = units(50, 50);
            update_index(request, "i", units(50, 50));
        })
        .await;
    assert!(matches!(
        both,
        Err(Error::UpdateTable(UpdateTableError::TooManyDecreases { decreases_today: 4, .. }))
    ));
    // Rejected as a whole: the table is unchanged.
    assert_eq!(harness.definition().await.throughput.read_units, 100);
    harness.update(|request| request.throughput = units(50, 50)).await.unwrap();
    let definition = harness.definition().await;
    assert_eq!(definition.throughput.decreases_today, 1);
    assert_eq!(definition.index("i").unwrap().throughput.decreases_today, 4);
    let unchanged = harness.update(|request| update_index(request, "i", units(60, 60))).await;
    let index = Some("i".to_owned());
    check_refused(unchanged, UpdateTableError::ThroughputUnchanged { index, read: 60, write: 60 });
}

#[tokio::test]
async fn switching_to_on_demand_and_back() {
    let harness = Harness::new().await;
    harness
        .create(CreateTable {
            global_indexes: vec![index("i", "owner", units(20_000, 2))],
            ..create_provisioned(5, 6)
        })
        .await;
    let with_units = harness
        .update(|request| {
            request.billing_mode = Some(BillingMode::PayPerRequest);
            update_index(request, "i", units(1, 1));
        })
        .await;
    check_refused(with_units, UpdateTableError::IndexThroughputOnDemand { index: "i".into() });
    harness.clock.advance_ms(1);
    harness
        .update(|request| request.billing_mode = Some(BillingMode::PayPerRequest))
        .await
        .unwrap();
    let definition = harness.definition().await;
    assert_eq!(definition.on_demand_since_ms, Some(START_MS + 1));
    let of_index = &definition.index("i").unwrap().throughput;
    for throughput in [&definition.throughput, of_index] {
        assert_eq!((throughput.read_units, throughput.write_units), (0, 0));
    }
    assert_eq!((of_index.warm_read_units, of_index.warm_write_units), (20_000, 4_000));
    harness
        .update(|request| {
            request.throughput.on_demand_max_read_units = Some(OnDemandMaximum::Units(9));
        })
        .await
        .unwrap();

    let provision = |request: &mut UpdateTable| {
        request.billing_mode = Some(BillingMode::Provisioned);
        request.throughput = units(1, 1);
    };
    let without_units =
        harness.update(|request| request.billing_mode = Some(BillingMode::Provisioned)).await;
    check_refused(without_units, UpdateTableError::ThroughputRequired);
    let without_index = harness.update(provision).await;
    check_refused(without_index, UpdateTableError::IndexThroughputRequired { index: "i".into() });
    harness
        .update(|request| {
            provision(request);
            update_index(request, "i", units(2, 3));
        })
        .await
        .unwrap();
    let definition = harness.definition().await;
    let of_index = &definition.index("i").unwrap().throughput;
    assert_eq!(definition.billing_mode, BillingMode::Provisioned);
    assert_eq!(definition.throughput.on_demand_max_read_units, None);
    assert_eq!((of_index.read_units, of_index.write_units), (2, 3));
    // The table was once on demand, and stays as warm as it got.
    assert_eq!(definition.on_demand_since_ms, Some(START_MS + 1));
    assert_eq!(definition.throughput.warm_read_units, 12_000);
    let alone =
        harness.update(|request| request.billing_mode = Some(BillingMode::Provisioned)).await;
    check_refused(alone, UpdateTableError::ThroughputRequired);
}

#[tokio::test]
async fn on_demand_maxima_are_merged_member_by_member() {
    let harness = Harness::new().await;
    harness.create(create("t")).await;
    let set = async |read, write| {
        harness
            .update(|request| {
                request.throughput.on_demand_max_read_units = read;
                request.throughput.on_demand_max_write_units = write;
            })
            .await
    };
    let maxima = async || {
        let throughput = harness.definition().await.throughput.clone();
        (throughput.on_demand_max_read_units, throughput.on_demand_max_write_units)
    };
    let (ten, twenty) = (Some(OnDemandMaximum::Units(10)), Some(OnDemandMaximum::Units(20)));
    set(ten, None).await.unwrap();
    assert_eq!(maxima().await, (Some(10), None));
    set(None, twenty).await.unwrap();
    assert_eq!(maxima().await, (Some(10), Some(20)));
    set(Some(OnDemandMaximum::Unlimited), None).await.unwrap();
    assert_eq!(maxima().await, (None, Some(20)));

    harness.engine.delete_table(&name("t")).await.unwrap();
    harness
        .create(CreateTable {
            global_indexes: vec![index("i", "owner", units(1, 1))],
            ..create_provisioned(1, 1)
        })
        .await;
    let on_provisioned = |write| UpdateTableError::OnDemandMaximumOnProvisioned { write };
    check_refused(set(ten, twenty).await, on_provisioned(false));
    check_refused(set(None, twenty).await, on_provisioned(true));
    let settings = ThroughputSettings { on_demand_max_read_units: ten, ..Default::default() };
    let on_index = harness.update(|request| update_index(request, "i", settings)).await;
    let index = "i".to_owned();
    check_refused(
        on_index,
        UpdateTableError::IndexOnDemandMaximumOnProvisioned { index, write: false },
    );
}

#[tokio::test]
async fn warm_throughput_only_rises() {
    let harness = Harness::new().await;
    harness
        .create(CreateTable {
            global_indexes: vec![index("i", "owner", ThroughputSettings::default())],
            ..create("t")
        })
        .await;
    let warm = |read, write| ThroughputSettings {
        warm_read_units: read,
        warm_write_units: write,
        ..ThroughputSettings::default()
    };
    let set = async |settings| harness.update(|request| request.throughput = settings).await;
    let on_index =
        async |settings| harness.update(|request| update_index(request, "i", settings)).await;
    let decrease = |write, index: Option<&str>| UpdateTableError::WarmThroughputDecrease {
        write,
        index: index.map(str::to_owned),
    };
    set(warm(Some(13_000), None)).await.unwrap();
    set(warm(Some(13_000), Some(4_001))).await.unwrap();
    check_refused(set(warm(Some(12_999), None)).await, decrease(false, None));
    check_refused(set(warm(None, Some(4_000))).await, decrease(true, None));
    on_index(warm(Some(12_001), None)).await.unwrap();
    check_refused(on_index(warm(Some(12_000), None)).await, decrease(false, Some("i")));
    let definition = harness.definition().await;
    assert_eq!(definition.throughput.warm_write_units, 4_001);
    assert_eq!(definition.index("i").unwrap().throughput.warm_read_units, 12_001);
}
