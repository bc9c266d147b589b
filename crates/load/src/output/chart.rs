//! Draws line charts as SVG. It knows nothing about latencies.

use std::fmt::Write;

use crate::svg::{self, escape};

pub const WIDTH: f64 = 900.0;
/// The height of a panel with its title and its axis.
pub const HEIGHT: f64 = 320.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 50.0;

/// One per colour.
pub const SERIES_MAX: usize = 6;

pub struct Panel {
    pub title: String,
    pub x_title: &'static str,
    pub x: Axis,
    pub y: Axis,
    pub series: Vec<Series>,
}

/// Maps values to positions from 0 to 1 along an axis, and chooses the labelled ones.
pub struct Axis {
    pub from: f64,
    pub to: f64,
    pub ticks: Vec<(f64, String)>,
}

pub struct Series {
    pub name: String,
    /// Whether to fill the area below the line.
    pub area: bool,
    pub points: Vec<(f64, f64)>,
}

impl Axis {
    /// A linear axis from 0, with round ticks.
    pub fn linear(to: f64, label: impl Fn(f64) -> String) -> Axis {
        let to = if to > 0.0 { to } else { 1.0 };
        let rough = to / 5.0;
        let magnitude = 10f64.powf(rough.log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * magnitude);
        let step = steps.into_iter().find(|step| *step >= rough).unwrap_or(rough);
        let count = (to / step).floor() as usize;
        let ticks = (0..=count).map(|index| index as f64 * step);
        Axis { from: 0.0, to, ticks: ticks.map(|value| (value, label(value))).collect() }
    }

    fn position(&self, value: f64) -> f64 {
        let share = (value - self.from) / (self.to - self.from);
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }
}

/// A complete document: panels, one below the other.
pub fn document(title: &str, panels: &[Panel]) -> String {
    let height = HEIGHT * panels.len() as f64 + 40.0;
    let title = escape(title);
    let mut svg = format!("<text class=\"title\" x=\"{LEFT}\" y=\"28\">{title}</text>\n");
    for (index, panel) in panels.iter().enumerate() {
        let _ = writeln!(svg, "<g transform=\"translate(0 {})\">", 40.0 + HEIGHT * index as f64);
        panel.draw(&mut svg);
        svg.push_str("</g>\n");
    }
    svg::document(&title, WIDTH, height, &svg)
}

impl Panel {
    fn draw(&self, svg: &mut String) {
        let _ = writeln!(
            svg,
            "<text class=\"panel\" x=\"{LEFT}\" y=\"36\">{}</text>",
            escape(&self.title)
        );
        self.draw_axes(svg);
        self.draw_legend(svg);
        for (index, series) in self.series.iter().take(SERIES_MAX).enumerate() {
            self.draw_series(index, series, svg);
        }
        let (width, height) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
        let _ = writeln!(
            svg,
            "<rect class=\"frame\" x=\"{LEFT}\" y=\"{TOP}\" width=\"{width}\" height=\"{height}\"/>"
        );
    }

    fn draw_axes(&self, svg: &mut String) {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        for (value, label) in &self.x.ticks {
            let x = self.x_at(*value);
            let _ = writeln!(
                svg,
                "<line class=\"grid\" x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{bottom}\"/>\
                 <text class=\"label\" x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                bottom + 18.0,
                escape(label)
            );
        }
        for (value, label) in &self.y.ticks {
            let y = self.y_at(*value);
            let _ = writeln!(
                svg,
                "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\"/>\
                 <text class=\"label\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 8.0,
                y + 4.0,
                escape(label)
            );
        }
        let _ = writeln!(
            svg,
            "<text class=\"label\" x=\"{right}\" y=\"{}\" text-anchor=\"end\">{}</text>",
            bottom + 38.0,
            escape(self.x_title)
        );
    }

    fn draw_legend(&self, svg: &mut String) {
        let mut right = WIDTH - RIGHT;
        for (index, series) in self.series.iter().take(SERIES_MAX).enumerate().rev() {
            let _ = writeln!(
                svg,
                "<text class=\"f{index}\" x=\"{right:.0}\" y=\"36\" text-anchor=\"end\">{}</text>",
                escape(&series.name)
            );
            // The widths of letters are unknown here, so every letter counts as a wide one.
            right -= 8.0 * series.name.chars().count() as f64 + 18.0;
        }
    }

    fn draw_series(&self, index: usize, series: &Series, svg: &mut String) {
        let points = series.points.iter();
        let points: Vec<String> =
            points.map(|(x, y)| format!("{:.1},{:.1}", self.x_at(*x), self.y_at(*y))).collect();
        let points = points.join(" ");
        if series.area
            && let (Some(first), Some(last)) = (series.points.first(), series.points.last())
        {
            let (first, last, bottom) = (self.x_at(first.0), self.x_at(last.0), HEIGHT - BOTTOM);
            let _ = writeln!(
                svg,
                "<polygon class=\"area f{index}\" points=\"{first:.1},{bottom} {points} {last:.1},{bottom}\"/>"
            );
        }
        let _ = writeln!(svg, "<polyline class=\"line s{index}\" points=\"{points}\"/>");
    }

    fn x_at(&self, value: f64) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * self.x.position(value)
    }

    fn y_at(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * self.y.position(value)
    }
}
