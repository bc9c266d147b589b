use super::*;

fn at(text: &str) -> u64 {
    u64::try_from(parse_local_time(text).expect("a time")).expect("after 1970")
}

fn shown(at_ms: u64) -> String {
    zenobe_engine::clock::iso8601_without_zone(at_ms)[..19].to_owned()
}

fn action(schedule: &str, zone: Option<&str>) -> ScheduledAction {
    ScheduledAction {
        name: "a".into(),
        created_at_ms: 0,
        updated_at_ms: 0,
        schedule: Schedule::parse(schedule, zone).expect(schedule),
        start_ms: None,
        end_ms: None,
        min: None,
        max: None,
    }
}

#[test]
fn the_latest_time_of_a_schedule_is_found() {
    // The schedule and its zone, what is looked through, and the latest time in it.
    let vectors = [
        (
            "at(2026-11-18T09:30:00)",
            None,
            "2026-11-18T09:29:59",
            "2026-11-18T09:30:00",
            "2026-11-18T09:30:00",
        ),
        ("at(2026-11-18T09:30:00)", None, "2026-11-18T09:30:00", "2026-11-19T00:00:00", ""),
        (
            "at(2026-11-18T9:30:00)",
            Some("Etc/GMT+9"),
            "2026-11-18T00:00:00",
            "2026-11-19T00:00:00",
            "2026-11-18T18:30:00",
        ),
        (
            "at(2026-11-18T09:30:00)",
            Some("Etc/GMT-2"),
            "2026-11-18T00:00:00",
            "2026-11-19T00:00:00",
            "2026-11-18T07:30:00",
        ),
        (
            "cron(0 8 * * ? *)",
            None,
            "2026-11-18T07:59:00",
            "2026-11-18T08:00:00",
            "2026-11-18T08:00:00",
        ),
        ("cron(0 8 * * ? *)", None, "2026-11-18T08:00:00", "2026-11-18T23:00:00", ""),
        (
            "cron(0 8 * * ? *)",
            None,
            "2026-11-10T08:00:00",
            "2026-11-18T07:00:00",
            "2026-11-17T08:00:00",
        ),
        (
            "cron(0 8 * * ? *)",
            Some("Etc/GMT+9"),
            "2026-11-17T00:00:00",
            "2026-11-18T23:00:00",
            "2026-11-18T17:00:00",
        ),
        (
            "cron(0/15 * * * ? *)",
            None,
            "2026-11-18T09:00:00",
            "2026-11-18T09:44:59",
            "2026-11-18T09:30:00",
        ),
        (
            "cron(*/20 9-17 ? * MON-FRI *)",
            None,
            "2026-11-13T00:00:00",
            "2026-11-15T12:00:00",
            "2026-11-13T17:40:00",
        ),
        (
            "cron(0 0 L * ? *)",
            None,
            "2026-02-01T00:00:00",
            "2026-03-05T00:00:00",
            "2026-02-28T00:00:00",
        ),
        (
            "cron(0 0 LW * ? *)",
            None,
            "2026-02-01T00:00:00",
            "2026-03-01T00:00:00",
            "2026-02-27T00:00:00",
        ),
        // 1 and 15 August 2026 are Saturdays, 31 May is a Sunday.
        (
            "cron(0 0 1W * ? *)",
            None,
            "2026-08-01T00:00:00",
            "2026-08-31T00:00:00",
            "2026-08-03T00:00:00",
        ),
        (
            "cron(0 0 15W 8 ? *)",
            None,
            "2026-08-02T00:00:00",
            "2026-08-31T00:00:00",
            "2026-08-14T00:00:00",
        ),
        (
            "cron(0 0 31W * ? *)",
            None,
            "2026-05-02T00:00:00",
            "2026-05-31T23:00:00",
            "2026-05-29T00:00:00",
        ),
        (
            "cron(0 6 ? * 3#2 *)",
            None,
            "2026-11-01T00:00:00",
            "2026-11-30T00:00:00",
            "2026-11-10T06:00:00",
        ),
        (
            "cron(0 6 ? * 6L *)",
            None,
            "2026-11-01T00:00:00",
            "2026-11-30T00:00:00",
            "2026-11-27T06:00:00",
        ),
        (
            "cron(0 6 ? NOV SUN 2026)",
            None,
            "2026-01-01T00:00:00",
            "2026-12-31T00:00:00",
            "2026-11-29T06:00:00",
        ),
        ("cron(0 6 ? NOV SUN 2025)", None, "2026-01-01T00:00:00", "2026-12-31T00:00:00", ""),
        ("rate(5 minutes)", None, "2026-11-18T09:00:00", "2026-11-18T09:04:00", ""),
        (
            "rate(5 minutes)",
            None,
            "2026-11-18T09:00:00",
            "2026-11-18T09:06:00",
            "2026-11-18T09:05:00",
        ),
    ];
    for (schedule, zone, after, until, expected) in vectors {
        let found = action(schedule, zone).latest_within(at(after), at(until));
        assert_eq!(found.map(shown).unwrap_or_default(), expected, "{schedule} {zone:?}");
    }
}

#[test]
fn a_recurring_action_stays_between_its_start_and_its_end() {
    let mut action = action("rate(1 hour)", None);
    action.start_ms = Some(at("2026-11-18T09:30:00"));
    action.end_ms = Some(at("2026-11-18T12:00:00"));
    let latest = |after: &str, until: &str| {
        action.latest_within(at(after), at(until)).map(shown).unwrap_or_default()
    };
    assert_eq!(latest("2026-11-18T08:00:00", "2026-11-18T09:29:59"), "");
    assert_eq!(latest("2026-11-18T08:00:00", "2026-11-18T09:30:00"), "2026-11-18T09:30:00");
    assert_eq!(latest("2026-11-18T09:30:00", "2026-11-18T11:00:00"), "2026-11-18T10:30:00");
    assert_eq!(latest("2026-11-18T11:30:00", "2026-11-18T19:00:00"), "");
}

#[test]
fn an_action_does_not_run_for_times_before_it_was_put() {
    let mut action = action("cron(0 8 * * ? *)", None);
    action.updated_at_ms = at("2026-11-18T08:00:30");
    let until = at("2026-11-18T08:01:00");
    assert_eq!(action.latest_within(at("2026-11-18T07:59:00"), until), None);
}

#[test]
fn what_is_no_schedule_is_refused() {
    for text in [
        "",
        "at()",
        "at(2026-11-18)",
        "at(2026-11-18T25:00:00)",
        "at(2026-02-30T00:00:00)",
        "rate(0 minutes)",
        "rate(5 weeks)",
        "rate(5)",
        "rate(5 minutes ago)",
        "cron(0 8 * * ?)",
        "cron(0 8 * * * *)",
        "cron(0 8 ? * ? *)",
        "cron(60 8 * * ? *)",
        "cron(0 24 * * ? *)",
        "cron(0 8 32 * ? *)",
        "cron(0 8 * 13 ? *)",
        "cron(0 8 ? * 8 *)",
        "cron(0 8 ? * 3#6 *)",
        "cron(0 8 * * ? 1969)",
        "cron(0 8 5-1 * ? *)",
        "cron(0 8 1/0 * ? *)",
        "cron(0,,5 8 * * ? *)",
        "every(5 minutes)",
    ] {
        let parsed = Schedule::parse(text, None);
        assert!(matches!(parsed, Err(ScheduleFault::Syntax(_))), "{text}: {parsed:?}");
    }
    for zone in ["Europe/Berlin", "Etc/GMT+13", "Etc/GMT-15", "Etc/GMT+0", "Etc/GMT+", "utc"] {
        let parsed = Schedule::parse("at(2026-11-18T09:30:00)", Some(zone));
        assert_eq!(parsed, Err(ScheduleFault::UnknownZone), "{zone}");
    }
    assert!(Schedule::parse("rate(1 day)", Some("UTC")).is_ok());
}
