//! Horizontal bars as an SVG, readable on light and dark pages.

use std::fmt::Write;

use zenobe_load::svg::{self, escape};

use crate::outcome::{Bar, Chart, count};

const TITLE: &str = "Requests per second of each program";
const WIDTH: f64 = 820.0;
const NAME_WIDTH: f64 = 280.0;
const LABEL_WIDTH: f64 = 110.0;
const BAR_HEIGHT: f64 = 16.0;
const ROW_HEIGHT: f64 = 22.0;
const TITLE_HEIGHT: f64 = 34.0;
const GAP: f64 = 14.0;

/// Draws each chart on its own scale.
pub fn draw(charts: &[&Chart]) -> String {
    let height: f64 =
        charts.iter().map(|chart| TITLE_HEIGHT + chart.bars.len() as f64 * ROW_HEIGHT + GAP).sum();
    let mut body = String::new();
    let mut top = 0.0;
    for chart in charts {
        draw_chart(&mut body, chart, top);
        top += TITLE_HEIGHT + chart.bars.len() as f64 * ROW_HEIGHT + GAP;
    }
    svg::document(TITLE, WIDTH, height, &body)
}

fn draw_chart(svg: &mut String, chart: &Chart, top: f64) {
    let _ = writeln!(
        svg,
        "  <text class=\"panel\" x=\"0\" y=\"{}\">{}</text>",
        top + 20.0,
        escape(&format!("{}, {}", chart.title, chart.unit))
    );
    let most = chart.bars.iter().filter_map(|bar| bar.value).fold(0.0, f64::max);
    for (row, bar) in chart.bars.iter().enumerate() {
        let y = top + TITLE_HEIGHT + row as f64 * ROW_HEIGHT;
        let _ = writeln!(
            svg,
            "  <text class=\"label\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
            NAME_WIDTH - 8.0,
            y + 12.5,
            escape(&bar.name)
        );
        draw_bar(svg, bar, most, y);
    }
}

fn draw_bar(svg: &mut String, bar: &Bar, most: f64, y: f64) {
    let Some(value) = bar.value else {
        let _ = writeln!(
            svg,
            "  <text class=\"label\" x=\"{NAME_WIDTH}\" y=\"{}\">not measured</text>",
            y + 12.5
        );
        return;
    };
    let width = (value / most.max(1.0) * (WIDTH - NAME_WIDTH - LABEL_WIDTH)).max(1.0);
    let class = if bar.own { "f2" } else { "other" };
    let _ = writeln!(
        svg,
        "  <rect class=\"{class}\" x=\"{NAME_WIDTH}\" y=\"{y}\" width=\"{width:.1}\" height=\"{BAR_HEIGHT}\" rx=\"2\"/>"
    );
    let _ = writeln!(
        svg,
        "  <text class=\"label\" x=\"{:.1}\" y=\"{}\">{}</text>",
        NAME_WIDTH + width + 6.0,
        y + 12.5,
        count(value)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_scaled_to_the_longest_and_missing_ones_are_named() {
        let bar = |name: &str, value, own| Bar { name: name.to_owned(), value, own };
        let chart = Chart {
            title: "Get & put".into(),
            unit: "requests/s",
            bars: vec![
                bar("ours", Some(2000.0), true),
                bar("<theirs>", Some(1000.0), false),
                bar("gone", None, false),
            ],
        };
        let svg = draw(&[&chart]);
        for part in [
            "Get &amp; put, requests/s",
            "&lt;theirs&gt;",
            "width=\"430.0\"",
            "width=\"215.0\"",
            "2,000",
            "not measured",
        ] {
            assert!(svg.contains(part), "{part} is not in\n{svg}");
        }
        // The background is a rectangle too, without rounded corners.
        assert_eq!(svg.matches("rx=\"2\"").count(), 2);
    }
}
