use super::*;

const MINUTE_MS: u64 = 60 * 1_000;

/// A policy, and what it starts with.
struct Case {
    settings: PolicySettings,
    limits: CapacityLimits,
    suspended: Suspended,
    provisioned: u64,
}

fn case(provisioned: u64) -> Case {
    Case {
        settings: PolicySettings {
            target_percent: 70.0,
            scale_out_cooldown_s: None,
            scale_in_cooldown_s: None,
            disable_scale_in: None,
        },
        limits: CapacityLimits { min: 5, max: 100 },
        suspended: Suspended::default(),
        provisioned,
    }
}

impl Case {
    fn with(mut self, change: impl FnOnce(&mut Case)) -> Case {
        change(&mut self);
        self
    }

    /// Consumes this many units per second in each minute (`None`: unknown), and checks the
    /// capacity after it.
    fn check(self, minutes: &[(Option<f64>, u64)]) {
        let Case { settings, limits, suspended, mut provisioned } = self;
        let mut state = TargetState::default();
        for (minute, (units, expected)) in (1_000..).zip(minutes) {
            if let Some(units) = units {
                let halves = (units * 120.0).round() as u64;
                state.add(Sample { minute, halves });
            }
            let now_ms = (minute + 1) * MINUTE_MS;
            let situation =
                Situation { settings: &settings, limits, suspended, provisioned, minute, now_ms };
            match decide(&situation, &state) {
                ScalingDecision::Scale { alarm: AlarmKind::High, units } => {
                    state.scaled_out = Some(ScaledOut { at_ms: now_ms, step: units - provisioned });
                    state.scaled_in_at_ms = None;
                    provisioned = units;
                }
                ScalingDecision::Scale { units, .. } => {
                    state.scaled_in_at_ms = Some(now_ms);
                    provisioned = units;
                }
                ScalingDecision::Quiet
                | ScalingDecision::Wait
                | ScalingDecision::NotScaled { .. } => {}
            }
            assert_eq!(provisioned, *expected, "after minute {} of {minutes:?}", minute - 999);
        }
    }
}

/// The same consumption for several minutes, with the same capacity after each.
fn steady(count: usize, units: f64, provisioned: u64) -> Vec<(Option<f64>, u64)> {
    vec![(Some(units), provisioned); count]
}

#[test]
fn two_minutes_above_the_target_add_capacity() {
    // 7 of 10 units are the target exactly.
    case(10).check(&steady(20, 7.0, 10));
    case(10).check(&[(Some(8.0), 10), (Some(8.0), 12), (Some(8.0), 12)]);
    // One minute is a peak, not a trend.
    case(10).check(&[(Some(50.0), 10), (Some(6.5), 10), (Some(50.0), 10), (Some(6.5), 10)]);
    // The latest minute says how much is needed: 14 / 0.7 is 20 exactly.
    case(10).check(&[(Some(30.0), 10), (Some(14.0), 20)]);
    // An unknown minute breaks the row.
    case(10).check(&[(Some(8.0), 10), (None, 10), (Some(8.0), 10), (Some(8.0), 12)]);
}

#[test]
fn fifteen_minutes_below_remove_capacity() {
    let low = [steady(14, 2.0, 50), steady(1, 2.0, 5)].concat();
    case(50).check(&low);
    // The busiest minute decides: 20 / 0.7 is 28.6.
    let varied = [steady(5, 2.0, 50), steady(1, 20.0, 50), steady(8, 2.0, 50), steady(1, 2.0, 29)];
    case(50).check(&varied.concat());
    // Twenty points below a target of 70 % are 50 of 100 units.
    case(100).check(&steady(20, 50.1, 100));
    case(100).check(&[steady(14, 50.0, 100), steady(1, 50.0, 72)].concat());
    // Without requests the capacity falls to the minimum.
    case(50).check(&[steady(14, 0.0, 50), steady(5, 0.0, 5)].concat());
    // After an unknown minute the row begins again.
    let broken = [steady(14, 2.0, 50), vec![(None, 50)], steady(14, 2.0, 50), steady(1, 2.0, 5)];
    case(50).check(&broken.concat());
}

#[test]
fn capacity_stays_within_its_limits() {
    case(10).check(&[(Some(500.0), 10), (Some(500.0), 100), (Some(500.0), 100)]);
    case(10).check(&[steady(14, 0.1, 10), steady(20, 0.1, 5)].concat());
    // What is outside is brought inside with the first change, and only then.
    case(2).check(&[(Some(1.0), 2), (Some(1.6), 2), (Some(1.6), 5)]);
    case(300).check(&[steady(14, 150.0, 300), steady(1, 150.0, 100)].concat());
    let at_maximum = Situation {
        settings: &case(1).settings,
        limits: CapacityLimits { min: 5, max: 100 },
        suspended: Suspended::default(),
        provisioned: 100,
        minute: 1,
        now_ms: 0,
    };
    let mut state = TargetState::default();
    (0..2).for_each(|minute| state.add(Sample { minute, halves: 120_000 }));
    let not_scaled = NotScaled { reason: AlreadyAt::Maximum, units: 100 };
    let expected = ScalingDecision::NotScaled { alarm: AlarmKind::High, not_scaled };
    assert_eq!(decide(&at_maximum, &state), expected);
}

#[test]
fn a_scale_out_cooldown_holds_back_all_but_larger_steps() {
    let cooled = || case(10).with(|case| case.settings.scale_out_cooldown_s = Some(180));
    let minutes = [
        (Some(14.0), 10),
        (Some(14.0), 20),
        (Some(20.0), 20),
        // By 9 units: less than the 10 of the first step.
        (Some(20.0), 20),
        (Some(20.0), 29),
    ];
    cooled().check(&minutes);
    cooled().check(&[(Some(14.0), 10), (Some(14.0), 20), (Some(50.0), 20), (Some(50.0), 72)]);
}

#[test]
fn a_scale_in_cooldown_ends_when_capacity_is_added() {
    let cooled =
        |minutes: u64| case(50).with(|case| case.settings.scale_in_cooldown_s = Some(minutes * 60));
    let first = [steady(14, 20.0, 50), steady(1, 20.0, 29)].concat();
    // Fifteen minutes at 2 units would remove more, but the cooldown lasts 20.
    cooled(20).check(&[first.clone(), steady(19, 2.0, 29), steady(1, 2.0, 5)].concat());
    cooled(20).check(&[first, steady(1, 30.0, 29), steady(1, 30.0, 43)].concat());
}

#[test]
fn what_is_disabled_or_suspended_does_not_happen() {
    let never = case(50).with(|case| case.settings.disable_scale_in = Some(true));
    never.check(&steady(30, 0.0, 50));
    let suspended = case(50).with(|case| case.suspended.scale_in = true);
    suspended.check(&[steady(20, 0.0, 50), steady(1, 60.0, 50), steady(1, 60.0, 86)].concat());
    let suspended = case(10).with(|case| case.suspended.scale_out = true);
    suspended.check(&[steady(5, 50.0, 10), steady(14, 1.0, 10), steady(1, 1.0, 5)].concat());
}

#[test]
fn a_state_survives_its_row() {
    let mut state = TargetState {
        target_id: "id".into(),
        checked_ms: 12,
        scaled_out: Some(ScaledOut { at_ms: 5, step: 6 }),
        scaled_in_at_ms: Some(7),
        report: Some(Report { text: "text".into(), at_ms: 8 }),
        ..TargetState::default()
    };
    (0..20).for_each(|minute| state.add(Sample { minute, halves: minute * 3 }));
    assert_eq!(state.last_minutes(19, IN_MINUTES).map(<[Sample]>::len), Some(IN_MINUTES));
    assert_eq!(TargetState::decode(state.encode()).unwrap(), state);
}
