//! Cron expressions: six fields, `Minutes Hours Day-of-month Month Day-of-week Year`, with Quartz's
//! wildcards.

use time::{Date, Month, OffsetDateTime};

use super::{DAY_MS, SECOND_MS};

const YEAR_MIN: u16 = 1970;
const YEAR_MAX: u16 = 2199;
/// How far back to look for a missed time.
const DAYS_BACK_MAX: i64 = 366;
const MINUTE_MS: i64 = 60 * SECOND_MS;

const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cron {
    minutes: Values,
    hours: Values,
    days: Days,
    months: Values,
    years: Values,
}

/// Which days of a month. One of the two fields for days is always `?`.
#[derive(Debug, Clone, PartialEq)]
enum Days {
    OfMonth(Values),
    Last,
    LastWorkday,
    /// The working day nearest to this one, within the month.
    NearestWorkday(u16),
    OfWeek(Values),
    /// The last such weekday of the month.
    LastOfWeek(u16),
    /// The nth such weekday of the month.
    NthOfWeek(u16, u16),
}

/// A set of numbers below 256. Years count from 1970.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Values([u64; 4]);

impl Values {
    fn insert(&mut self, value: u16) {
        self.0[usize::from(value / 64) % 4] |= 1 << (value % 64);
    }

    fn contains(self, value: u16) -> bool {
        value < 256 && self.0[usize::from(value / 64)] & 1 << (value % 64) != 0
    }
}

impl Cron {
    pub(super) fn parse(text: &str) -> Result<Cron, &'static str> {
        let fields: Vec<&str> = text.split_whitespace().collect();
        let Ok([minutes, hours, day, month, weekday, year]) = <[&str; 6]>::try_from(fields) else {
            return Err("expected six fields in cron(…)");
        };
        let years = values(year, YEAR_MIN, YEAR_MAX, &[]).ok_or("the year is not valid")?;
        let mut from_1970 = Values::default();
        years.into_iter().for_each(|year| from_1970.insert(year - YEAR_MIN));
        let set = |text, min, max, names: &[&str], fault| {
            values(text, min, max, names).map(collect).ok_or(fault)
        };
        Ok(Cron {
            minutes: set(minutes, 0, 59, &[], "the minutes are not valid")?,
            hours: set(hours, 0, 23, &[], "the hours are not valid")?,
            days: parse_days(day, weekday)?,
            months: set(month, 1, 12, &MONTHS, "the month is not valid")?,
            years: from_1970,
        })
    }

    /// The last time in `(after_ms, until_ms]`, both local.
    pub(super) fn latest_within(&self, after_ms: i64, until_ms: i64) -> Option<i64> {
        let last_day = until_ms.div_euclid(DAY_MS);
        let first_day = after_ms.div_euclid(DAY_MS).max(last_day - DAYS_BACK_MAX);
        let days = (first_day..=last_day).rev().filter(|day| self.is_on(*day));
        let mut times = days.filter_map(|day| {
            let until_minute = (until_ms - day * DAY_MS).min(DAY_MS - 1) / MINUTE_MS;
            let minute = (0..=until_minute).rev().find(|minute| self.is_at(*minute))?;
            Some(day * DAY_MS + minute * MINUTE_MS)
        });
        times.next().filter(|at_ms| *at_ms > after_ms)
    }

    fn is_at(&self, minute_of_day: i64) -> bool {
        let (hour, minute) = (minute_of_day / 60, minute_of_day % 60);
        self.hours.contains(hour as u16) && self.minutes.contains(minute as u16)
    }

    fn is_on(&self, day: i64) -> bool {
        let Ok(moment) = OffsetDateTime::from_unix_timestamp(day * DAY_MS / SECOND_MS) else {
            return false;
        };
        let date = moment.date();
        let year = u16::try_from(date.year()).unwrap_or(0);
        year.checked_sub(YEAR_MIN).is_some_and(|year| self.years.contains(year))
            && self.months.contains(u16::from(u8::from(date.month())))
            && self.days.include(date)
    }
}

impl Days {
    fn include(&self, date: Date) -> bool {
        let day = u16::from(date.day());
        let length = u16::from(month_length(date.year(), date.month()));
        let weekday = weekday_of(date);
        match self {
            Days::OfMonth(days) => days.contains(day),
            Days::Last => day == length,
            Days::LastWorkday => nearest_workday(date, length) == Some(day),
            Days::NearestWorkday(wanted) => {
                *wanted <= length && nearest_workday(date, *wanted) == Some(day)
            }
            Days::OfWeek(days) => days.contains(weekday),
            Days::LastOfWeek(wanted) => weekday == *wanted && day + 7 > length,
            Days::NthOfWeek(wanted, nth) => weekday == *wanted && day.div_ceil(7) == *nth,
        }
    }
}

fn month_length(year: i32, month: Month) -> u8 {
    let next = |month: Month| if month == Month::December { year + 1 } else { year };
    let first = Date::from_calendar_date(next(month), month.next(), 1);
    first.ok().and_then(Date::previous_day).map_or(31, Date::day)
}

/// Sunday is 1.
fn weekday_of(date: Date) -> u16 {
    u16::from(date.weekday().number_from_sunday())
}

/// The working day nearest to a day of the month of `date`, within that month.
fn nearest_workday(date: Date, day: u16) -> Option<u16> {
    let length = u16::from(month_length(date.year(), date.month()));
    let wanted = date.replace_day(u8::try_from(day).ok()?).ok()?;
    Some(match weekday_of(wanted) {
        7 if day > 1 => day - 1,
        7 => day + 2,
        1 if day < length => day + 1,
        1 => day - 2,
        _ => day,
    })
}

fn parse_days(day: &str, weekday: &str) -> Result<Days, &'static str> {
    match (day, weekday) {
        ("?", "?") => Err("the day of month and the day of week can't both be ?"),
        ("?", weekday) => parse_weekdays(weekday).ok_or("the day of week is not valid"),
        (day, "?") => parse_days_of_month(day).ok_or("the day of month is not valid"),
        _ => Err("the day of month or the day of week must be ?"),
    }
}

fn parse_days_of_month(text: &str) -> Option<Days> {
    match text {
        "L" => return Some(Days::Last),
        "LW" => return Some(Days::LastWorkday),
        _ => {}
    }
    if let Some(day) = text.strip_suffix('W') {
        return Some(Days::NearestWorkday(number(day, 1, 31, &[])?));
    }
    values(text, 1, 31, &[]).map(|days| Days::OfMonth(collect(days)))
}

fn parse_weekdays(text: &str) -> Option<Days> {
    if text == "L" {
        return Some(Days::OfWeek(collect([7])));
    }
    if let Some(day) = text.strip_suffix('L') {
        return Some(Days::LastOfWeek(number(day, 1, 7, &WEEKDAYS)?));
    }
    if let Some((day, nth)) = text.split_once('#') {
        return Some(Days::NthOfWeek(number(day, 1, 7, &WEEKDAYS)?, number(nth, 1, 5, &[])?));
    }
    values(text, 1, 7, &WEEKDAYS).map(|days| Days::OfWeek(collect(days)))
}

fn collect(values: impl IntoIterator<Item = u16>) -> Values {
    let mut set = Values::default();
    values.into_iter().for_each(|value| set.insert(value));
    set
}

/// The values of a field: `*`, `5`, `1-5`, `*/15`, `0/15`, `1-10/2`, and lists of these.
fn values(text: &str, min: u16, max: u16, names: &[&str]) -> Option<Vec<u16>> {
    let mut found = Vec::new();
    for part in text.split(',') {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(number(step, 1, max.max(1), &[])?)),
            None => (part, None),
        };
        let (first, last) = match range.split_once('-') {
            _ if range == "*" => (min, max),
            Some((first, last)) => {
                (number(first, min, max, names)?, number(last, min, max, names)?)
            }
            None => {
                let first = number(range, min, max, names)?;
                (first, if step.is_some() { max } else { first })
            }
        };
        if first > last {
            return None;
        }
        found.extend((first..=last).step_by(usize::from(step.unwrap_or(1))));
    }
    Some(found)
}

/// A number, or the name that stands for it: the first name for `min`.
fn number(text: &str, min: u16, max: u16, names: &[&str]) -> Option<u16> {
    if let Some(position) = names.iter().position(|name| name.eq_ignore_ascii_case(text)) {
        return Some(min + position as u16);
    }
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| is_plain);
    number.filter(|number| (min..=max).contains(number))
}
