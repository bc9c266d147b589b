//! The report for people.

use zenobe_load::human_count;
use zenobe_monitoring::cost::StorageClass;
use zenobe_monitoring::cost::estimate::{Estimate, FlowEstimate, Mode, ModeCosts, TableEstimate};

use super::Report;
use crate::time::iso8601;

const MINUTE_MS: u64 = 60_000;

/// How many lines of costs are shown.
const LINES_MAX: usize = 25;

pub fn render(report: &Report) -> Vec<String> {
    let estimate = &report.estimate;
    let has_traffic = estimate.tables.iter().any(|table| !table.entries.is_empty());
    if !has_traffic && estimate.stream_reads == 0 {
        return nothing(report);
    }
    let mut lines = head(report);
    lines.push(String::new());
    lines.extend(tables(estimate));
    lines.push(String::new());
    lines.extend(totals(report));
    lines.push(String::new());
    lines.extend(where_it_goes(report));
    lines.push(String::new());
    lines.extend(capacities(estimate));
    lines.push(String::new());
    lines.extend(notes(report));
    lines
}

fn nothing(report: &Report) -> Vec<String> {
    let recorded = &report.recorded;
    let between =
        format!("between {} and {}", moment(recorded.since_ms), moment(recorded.until_ms));
    let mut lines =
        vec![format!("No traffic has been recorded {between}, so there is nothing to estimate.")];
    lines.push(match recorded.is_metered {
        true => "Send requests to the tables, or choose another time with --since, --until or --last.".into(),
        false => "The server meters no table: start it with --throughput observe, or run `zenobe throughput TABLE observe`.".into(),
    });
    lines
}

fn head(report: &Report) -> Vec<String> {
    let (hours, observed) = (report.estimate.observed_hours, &report.recorded.observed_minutes);
    vec![
        format!(
            "Traffic between {} and {}: {} observed, extrapolated to a month of 730 hours ({} times as long)",
            moment(observed.first().map_or(0, |first| first.start) * MINUTE_MS),
            moment(observed.last().map_or(0, |last| last.end) * MINUTE_MS),
            duration(hours),
            number(report.estimate.month_factor()),
        ),
        format!(
            "Prices of {} in US dollars as of {}, without taxes and discounts. Prices change: compare them with AWS's",
            report.region, report.prices_date
        ),
    ]
}

/// A full minute.
fn moment(at_ms: u64) -> String {
    iso8601(at_ms).replace(":00.000Z", "Z")
}

fn duration(hours: f64) -> String {
    match hours {
        hours if hours >= 48.0 => format!("{} days", number(hours / 24.0)),
        hours if hours >= 2.0 => format!("{} hours", number(hours)),
        hours => format!("{} minutes", number(hours * 60.0)),
    }
}

fn tables(estimate: &Estimate) -> Vec<String> {
    let factor = estimate.month_factor();
    let mut lines = vec![format!(
        "{:<32}{:>13}{:>13}{:>13}  {:<13}{:>11}",
        "PER MONTH", "ON DEMAND", "PROVISIONED", "AUTO SCALING", "CHEAPEST", "STORED"
    )];
    let line = |name: &str, costs: ModeCosts, cheapest: &str, stored: f64| {
        let [on_demand, provisioned, scaled] = costs.map(|cost| money(cost * factor));
        format!(
            "{name:<32}{on_demand:>13}{provisioned:>13}{scaled:>13}  {cheapest:<13}{:>11}",
            money(stored)
        )
    };
    for table in estimate.tables.iter().take(LINES_MAX) {
        let cheapest = table.cheapest_mode().name();
        lines.push(line(&label(table), table.costs, cheapest, table.storage.month()));
    }
    if estimate.tables.len() > LINES_MAX {
        lines.push(format!("… and {} more tables", estimate.tables.len() - LINES_MAX));
    }
    lines.push(line("all tables", estimate.costs(), "", estimate.storage_month().month()));
    lines
}

fn label(table: &TableEstimate) -> String {
    let facts = &table.facts;
    match (facts.exists, facts.class) {
        (false, _) => format!("{} (deleted)", facts.name),
        (true, StorageClass::InfrequentAccess) => format!("{} (infrequent)", facts.name),
        (true, StorageClass::Standard) => facts.name.clone(),
    }
}

fn totals(report: &Report) -> Vec<String> {
    let estimate = &report.estimate;
    let factor = estimate.month_factor();
    let storage = estimate.storage_month();
    let streams = estimate.stream_reads_cost * factor;
    let free = report.free_tier.unwrap_or_default();
    let rest = storage.month() + streams - free.storage - free.stream_reads;
    let all = |throughput: f64, free: f64| money((throughput * factor - free).max(0.0) + rest);
    let [on_demand, provisioned, scaled] = estimate.costs();
    let mut lines = vec![
        format!(
            "Per month in all: {} on demand, {} provisioned, {} with auto scaling; {} if each table has its cheapest mode",
            all(on_demand, free.throughput[0]),
            all(provisioned, free.throughput[1]),
            all(scaled, free.throughput[2]),
            all(estimate.cheapest(), 0.0),
        ),
        format!(
            "In the observed time: {} on demand, {} provisioned, {} with auto scaling, without what is stored",
            money(on_demand),
            money(provisioned),
            money(scaled)
        ),
    ];
    if report.free_tier.is_some() {
        lines.push(format!(
            "The free tier takes off up to {} of storage, {} of stream reads, and {} of provisioned capacity",
            money(free.storage), money(free.stream_reads), money(free.throughput[1])
        ));
    }
    if storage.restore_once > 0.0 {
        lines.push(format!(
            "Once: restoring all tables {}, exporting them {}, importing as much {}",
            money(storage.restore_once),
            money(storage.export_once),
            money(storage.import_once)
        ));
    }
    lines
}

/// Throughput on demand by group, and what else is paid, largest first.
fn where_it_goes(report: &Report) -> Vec<String> {
    let estimate = &report.estimate;
    let factor = estimate.month_factor();
    let storage = estimate.storage_month();
    let groups = estimate.grouped(report.by.group()).into_iter().map(|group| {
        let units = (group.counts.read_halves + group.counts.write_halves) as f64 / 2.0;
        let mean = units / group.counts.requests.max(1) as f64;
        let detail = match group.counts.requests {
            0 => format!("{} units", number(units)),
            requests => format!("{} requests of {} units", human_count(requests), number(mean)),
        };
        (group.name, group.costs[Mode::OnDemand as usize] * factor, detail)
    });
    let mut rows: Vec<(String, f64, String)> = groups.collect();
    for (name, cost) in [
        ("storage", storage.storage_month),
        ("point-in-time recovery", storage.recovery_month),
        ("backups", storage.backups_month),
        ("stream reads", estimate.stream_reads_cost * factor),
    ] {
        if cost > 0.0 {
            rows.push((name.to_owned(), cost, String::new()));
        }
    }
    rows.sort_by(|left, right| right.1.total_cmp(&left.1));
    let all: f64 = rows.iter().map(|(_, cost, _)| cost).sum();
    let title = format!("WHERE THE MONEY GOES, BY {}", report.by.name().to_uppercase());
    let mut lines = vec![format!("{title:<62}{:>13}{:>8}", "ON DEMAND", "SHARE")];
    for (name, cost, detail) in rows.iter().take(LINES_MAX) {
        let share = if all > 0.0 { cost / all * 100.0 } else { 0.0 };
        let line = format!("{name:<62}{:>13}{share:>7.1}%  {detail}", money(*cost));
        lines.push(line.trim_end().to_owned());
    }
    if rows.len() > LINES_MAX {
        lines.push(format!("… and {} more, which --json shows", rows.len() - LINES_MAX));
    }
    lines
}

/// What would have to be provisioned.
fn capacities(estimate: &Estimate) -> Vec<String> {
    let mut lines = vec![format!(
        "{:<38}{:<7}{:>11}{:>10}{:>12}{:>9}{:>9}{:>11}",
        "CAPACITY", "", "UNITS", "CONSTANT", "NO BURST", "BURSTS", "SCALED", "THROTTLED"
    )];
    for table in estimate.tables.iter().take(LINES_MAX) {
        for resource in &table.resources {
            let name = match &resource.index {
                None => table.facts.name.clone(),
                Some(index) => format!("{}/{index}", table.facts.name),
            };
            for (access, flow) in [("reads", &resource.read), ("writes", &resource.write)] {
                if flow.halves > 0 {
                    lines.push(capacity(&name, access, flow));
                }
            }
        }
    }
    lines
}

fn capacity(name: &str, access: &str, flow: &FlowEstimate) -> String {
    format!(
        "{name:<38}{access:<7}{:>11}{:>10}{:>12}{:>9}{:>9}{:>11}",
        number(flow.units()),
        flow.constant.units,
        flow.constant.units_without_burst,
        format!("{} min", flow.constant.burst_minutes),
        number(flow.scaled.mean_units()),
        format!("{} min", flow.scaled.throttled_minutes),
    )
}

fn notes(report: &Report) -> Vec<String> {
    let mut notes = vec![
        "CONSTANT is the least provisioned capacity that would have served every minute, with saved capacity in as many of them as BURSTS says; NO BURST is the least without saved capacity.".to_owned(),
        "SCALED is the mean of what auto scaling would have set with a target of 70 %; THROTTLED are the minutes in which it was behind. Peaks within a minute are not seen.".to_owned(),
    ];
    if report.estimate.observed_hours < 24.0 {
        notes.push("Less than a day was observed, so the month is a rough guess.".to_owned());
    }
    notes
}

/// Dollars, with more digits for small amounts.
fn money(dollars: f64) -> String {
    match dollars {
        0.0 => "$0".to_owned(),
        dollars if dollars < 0.000_001 => "<$0.000001".to_owned(),
        dollars if dollars < 0.01 => format!("${dollars:.6}"),
        dollars if dollars < 1.0 => format!("${dollars:.4}"),
        dollars => format!("${dollars:.2}"),
    }
}

/// At most two digits after the point, and none for whole numbers.
fn number(number: f64) -> String {
    let hundredths = (number * 100.0).round() as u64;
    let fraction = format!(".{:02}", hundredths % 100);
    let fraction = fraction.trim_end_matches('0').trim_end_matches('.');
    format!("{}{fraction}", human_count(hundredths / 100))
}

#[cfg(test)]
mod tests {
    use zenobe_api::Operation;
    use zenobe_monitoring::cost::PriceFile;
    use zenobe_monitoring::cost::estimate::TableFacts;
    use zenobe_monitoring::cost::needed_capacity::MinuteUse;
    use zenobe_monitoring::cost::observed::{EntryCounts, EntryKey, ResourceUse, TableTraffic};
    use zenobe_monitoring::traffic::Pattern;

    use super::super::By;
    use super::super::fetch::Recorded;
    use super::*;

    fn report(tables: Vec<(TableFacts, TableTraffic)>, is_metered: bool) -> Report {
        let recorded = Recorded {
            since_ms: 0,
            until_ms: 7_200_000,
            observed_minutes: std::iter::once(0..60).collect(),
            stream_reads: 0,
            is_metered,
        };
        let prices = PriceFile::built_in();
        let observed = recorded.observed_minutes.clone();
        let estimate = Estimate::new(prices.region("us-east-1").unwrap(), &observed, tables, 0);
        let (region, prices_date) = ("us-east-1".into(), prices.date);
        Report { recorded, estimate, free_tier: None, by: By::Pattern, region, prices_date }
    }

    fn orders() -> (TableFacts, TableTraffic) {
        let facts = TableFacts { name: "Orders".into(), exists: true, ..TableFacts::default() };
        let mut traffic = TableTraffic::default();
        let key = EntryKey { index: None, operation: Operation::PutItem, pattern: Pattern::Write };
        let counts = EntryCounts { requests: 1_000, write_halves: 2_000, ..EntryCounts::default() };
        traffic.entries.insert(key, counts);
        let write = vec![MinuteUse { minute: 5, halves: 2_000 }];
        traffic.uses.insert(None, ResourceUse { read: Vec::new(), write });
        (facts, traffic)
    }

    #[test]
    fn a_report_says_where_the_money_goes() {
        let lines = render(&report(vec![orders()], true));
        let text = lines.join("\n");
        // 1,000 units are $0.000625, and 730 times that in a month. Constant: 17 writes and one read.
        for expected in [
            "Traffic between 1970-01-01T00:00Z and 1970-01-01T01:00Z: 60 minutes observed, extrapolated to a month of 730 hours (730 times as long)",
            "Prices of us-east-1 in US dollars as of 2024-11-01",
            "Orders                                $0.4562        $8.16        $4.39",
            "In the observed time: $0.000625 on demand",
            "Orders PutItem                                                      $0.4562  100.0%  1,000 requests of 1 units",
            "Less than a day was observed",
        ] {
            assert!(text.contains(expected), "{expected} is not in\n{text}");
        }
    }

    #[test]
    fn without_traffic_there_is_advice() {
        let idle = TableFacts { name: "Idle".into(), exists: true, ..TableFacts::default() };
        let tables = || vec![(idle.clone(), TableTraffic::default())];
        let lines = render(&report(tables(), true));
        assert!(lines[0].starts_with("No traffic has been recorded between 1970-01-01T00:00Z"));
        assert!(lines[1].contains("--last"));
        assert!(render(&report(tables(), false))[1].contains("--throughput observe"));
    }

    #[test]
    fn numbers_are_short() {
        let shown = [0.0, 0.000_000_1, 0.000_625, 0.456_25, 12.345].map(money);
        assert_eq!(shown, ["$0", "<$0.000001", "$0.000625", "$0.4562", "$12.35"]);
        assert_eq!([1.0, 0.5, 1234.567].map(number), ["1", "0.5", "1,234.57"]);
    }
}
