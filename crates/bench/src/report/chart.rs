//! Horizontal bars as an SVG, readable on light and dark pages.

use std::fmt::Write;

use crate::outcome::{Bar, Chart, count};

const WIDTH: f64 = 820.0;
const NAME_WIDTH: f64 = 280.0;
const LABEL_WIDTH: f64 = 110.0;
const BAR_HEIGHT: f64 = 16.0;
const ROW_HEIGHT: f64 = 22.0;
const TITLE_HEIGHT: f64 = 34.0;
const GAP: f64 = 14.0;

const STYLE: &str = "\
    text { font: 13px system-ui, sans-serif; fill: #24292f; }\n    \
    .title { font-weight: 600; }\n    \
    .own { fill: #0a7d5a; }\n    \
    .other { fill: #8b949e; }\n    \
    .quiet { fill: #6e7781; }\n    \
    @media (prefers-color-scheme: dark) {\n      \
    text { fill: #e6edf3; } .own { fill: #2fbf8f; } .other { fill: #6e7681; } .quiet { fill: #9198a1; }\n    \
    }";

/// Draws each chart on its own scale.
pub fn draw(charts: &[&Chart]) -> String {
    let height: f64 =
        charts.iter().map(|chart| TITLE_HEIGHT + chart.bars.len() as f64 * ROW_HEIGHT + GAP).sum();
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" role=\"img\">\n  <style>\n    {STYLE}\n  </style>\n"
    );
    let mut top = 0.0;
    for chart in charts {
        draw_chart(&mut svg, chart, top);
        top += TITLE_HEIGHT + chart.bars.len() as f64 * ROW_HEIGHT + GAP;
    }
    svg.push_str("</svg>\n");
    svg
}

fn draw_chart(svg: &mut String, chart: &Chart, top: f64) {
    let _ = writeln!(
        svg,
        "  <text class=\"title\" x=\"0\" y=\"{}\">{}</text>",
        top + 20.0,
        escaped(&format!("{}, {}", chart.title, chart.unit))
    );
    let most = chart.bars.iter().filter_map(|bar| bar.value).fold(0.0, f64::max);
    for (row, bar) in chart.bars.iter().enumerate() {
        let y = top + TITLE_HEIGHT + row as f64 * ROW_HEIGHT;
        let _ = writeln!(
            svg,
            "  <text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
            NAME_WIDTH - 8.0,
            y + 12.5,
            escaped(&bar.name)
        );
        draw_bar(svg, bar, most, y);
    }
}

fn draw_bar(svg: &mut String, bar: &Bar, most: f64, y: f64) {
    let Some(value) = bar.value else {
        let _ = writeln!(
            svg,
            "  <text class=\"quiet\" x=\"{NAME_WIDTH}\" y=\"{}\">not measured</text>",
            y + 12.5
        );
        return;
    };
    let width = (value / most.max(1.0) * (WIDTH - NAME_WIDTH - LABEL_WIDTH)).max(1.0);
    let class = if bar.own { "own" } else { "other" };
    let _ = writeln!(
        svg,
        "  <rect class=\"{class}\" x=\"{NAME_WIDTH}\" y=\"{y}\" width=\"{width:.1}\" height=\"{BAR_HEIGHT}\" rx=\"2\"/>"
    );
    let _ = writeln!(
        svg,
        "  <text x=\"{:.1}\" y=\"{}\">{}</text>",
        NAME_WIDTH + width + 6.0,
        y + 12.5,
        count(value)
    );
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
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
        assert_eq!(svg.matches("<rect").count(), 2);
    }
}
